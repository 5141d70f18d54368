package sim

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"
)

var (
	get     = []string{http.MethodGet}
	post    = []string{http.MethodPost}
	postPut = []string{http.MethodPost, http.MethodPut}
)

// routes are the paths of the engine but /v1/models/{id} and /sim/.
var routes = map[string]*route{
	"/v1/chat/completions":     {post, true, (*exchange).chat},
	"/v1/completions":          {post, true, (*exchange).completions},
	"/v1/responses":            {post, true, (*exchange).responses},
	"/v1/messages":             {post, true, (*exchange).messages},
	"/generate":                {postPut, true, (*exchange).sglGenerate},
	"/v1/embeddings":           {post, true, (*exchange).embeddings},
	"/v1/rerank":               {post, true, (*exchange).rerank},
	"/v1/score":                {post, true, (*exchange).score},
	"/v1/classify":             {post, true, (*exchange).classify},
	"/v1/moderations":          {post, true, (*exchange).moderations},
	"/v1/audio/transcriptions": {post, true, (*exchange).transcriptions},
	"/v1/audio/translations":   {post, true, (*exchange).transcriptions},
	"/v1/audio/speech":         {post, true, (*exchange).speech},
	"/v1/images/generations":   {post, true, (*exchange).images},
	"/v1/images/edits":         {post, true, (*exchange).images},
	"/v1/ocr":                  {post, true, (*exchange).ocr},
	"/tokenize":                {post, true, (*exchange).tokenize},
	"/detokenize":              {post, true, (*exchange).detokenize},
	"/v1/tokenize":             {post, true, (*exchange).tokenize},
	"/v1/detokenize":           {post, true, (*exchange).detokenize},
	"/abort_request":           {post, false, (*exchange).abortRequest},
	"/v1/models":               {get, false, (*exchange).models},
	"/health":                  {get, false, (*exchange).health},
	"/health_generate":         {get, false, (*exchange).health},
	"/get_model_info":          {get, false, (*exchange).modelInfo},
	"/version":                 {get, false, (*exchange).version},
	"/ping":                    {get, false, (*exchange).health},
}

// route finds the route of a path, nil if there is none, and the name under
// which its requests count.
func (e *Engine) route(path string) (rt *route, name string) {
	if rt, ok := routes[path]; ok {
		return rt, path
	}
	if strings.HasPrefix(path, "/v1/models/") {
		return &route{get, false, (*exchange).modelByID}, "/v1/models/{id}"
	}
	return nil, "other"
}

// modelCard is an entry of /v1/models.
type modelCard struct {
	ID          string            `json:"id"`
	Object      string            `json:"object"`
	Created     int64             `json:"created"`
	OwnedBy     string            `json:"owned_by"`
	Root        string            `json:"root"`
	Parent      *string           `json:"parent"`
	MaxModelLen int               `json:"max_model_len"`
	Permission  []modelPermission `json:"permission,omitempty"`
}

type modelPermission struct {
	ID                 string  `json:"id"`
	Object             string  `json:"object"`
	Created            int64   `json:"created"`
	AllowCreateEngine  bool    `json:"allow_create_engine"`
	AllowSampling      bool    `json:"allow_sampling"`
	AllowLogprobs      bool    `json:"allow_logprobs"`
	AllowSearchIndices bool    `json:"allow_search_indices"`
	AllowView          bool    `json:"allow_view"`
	AllowFineTuning    bool    `json:"allow_fine_tuning"`
	Organization       string  `json:"organization"`
	Group              *string `json:"group"`
	IsBlocking         bool    `json:"is_blocking"`
}

type modelList struct {
	Object string      `json:"object"`
	Data   []modelCard `json:"data"`
}

func (x *exchange) models() {
	list := modelList{Object: "list"}
	for _, m := range x.p.served() {
		list.Data = append(list.Data, x.card(m))
	}
	x.replyJSON(http.StatusOK, list)
}

func (x *exchange) modelByID() {
	id := strings.TrimPrefix(x.r.URL.Path, "/v1/models/")
	if !x.p.serves(id) {
		x.refuse(unknownModel(id))
	}
	x.replyJSON(http.StatusOK, x.card(id))
}

func (x *exchange) card(model string) modelCard {
	now := time.Now().Unix()
	card := modelCard{
		ID: model, Object: "model", Created: now, OwnedBy: string(x.p.Flavour), Root: model, MaxModelLen: x.p.window(),
	}
	if x.p.Flavour == VLLM {
		card.Permission = []modelPermission{{
			ID: x.id("modelperm-"), Object: "model_permission", Created: now, AllowSampling: true,
			AllowLogprobs: true, AllowView: true, Organization: "*",
		}}
	}
	return card
}

func (x *exchange) health() { x.reply(int(x.e.health.Load()), "text/plain", nil) }

// modelInfo is SGLang's GET /get_model_info.
func (x *exchange) modelInfo() {
	model := x.p.served()[0]
	x.replyJSON(http.StatusOK, struct {
		ModelPath     string  `json:"model_path"`
		TokenizerPath string  `json:"tokenizer_path"`
		IsGeneration  bool    `json:"is_generation"`
		Preferred     *string `json:"preferred_sampling_params"`
		WeightVersion string  `json:"weight_version"`
	}{model, model, true, nil, "default"})
}

// version is vLLM's GET /version.
func (x *exchange) version() {
	x.replyJSON(http.StatusOK, struct {
		Version string `json:"version"`
	}{"0.0.0+sim"})
}

// abortRequest is SGLang's POST /abort_request.
func (x *exchange) abortRequest() {
	o, err := parseObject(x.body)
	if err != nil {
		x.refuse(err)
	}
	id, all := o.text("rid"), o.flag("abort_all", false)
	if o.err != nil {
		x.refuse(o.err)
	}
	x.e.live.abort(id, all)
	x.reply(http.StatusOK, "text/plain", nil)
}

// id makes the id of an answer: the prefix and 32 hexadecimal digits that depend
// on the seed and the number of the request.
func (x *exchange) id(prefix string) string {
	sum := md5.Sum(fmt.Appendf(nil, "%d %d %s", x.p.Seed, x.rec.Seq, prefix))
	return prefix + hex.EncodeToString(sum[:])
}
