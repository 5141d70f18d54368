package sim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// vector returns n numbers between -1 and 1 that depend on the text.
func vector(text string, n int) []float32 {
	h := fnv.New64a()
	h.Write([]byte(text))
	rng := rand.New(rand.NewPCG(h.Sum64(), 0))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(2*rng.Float64() - 1)
	}
	return v
}

// relevance returns a number between 0 and 1 that depends on two texts.
func relevance(a, b string) float64 {
	return math.Round(float64(vector(a+"\x00"+b, 1)[0]+1)/2*1e6) / 1e6
}

// listMeta is what the answers of the pooling surfaces have in common.
type listMeta struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
}

func (x *exchange) listMeta(prefix, model string) listMeta {
	return listMeta{x.id(prefix), "list", time.Now().Unix(), model}
}

// poolingAnswer is an answer of the pooling surfaces.
type poolingAnswer[T any] struct {
	listMeta
	Data  []T         `json:"data"`
	Usage promptUsage `json:"usage"`
}

type promptUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Total      int `json:"total_tokens"`
	Completion int `json:"completion_tokens"`
}

func usageOf(texts ...string) promptUsage {
	n := 0
	for _, t := range texts {
		n += countTokens(t)
	}
	return promptUsage{Prompt: n, Total: n}
}

type embedding struct {
	Index     int    `json:"index"`
	Object    string `json:"object"`
	Embedding any    `json:"embedding"`
}

// embeddings is POST /v1/embeddings.
func (x *exchange) embeddings() {
	o := x.obj
	o.need("input")
	inputs := o.prompts("input")
	format, n := o.text("encoding_format"), o.positive("dimensions")
	model := x.model()
	if format != "" && format != "float" && format != "base64" {
		o.fail("encoding_format", "literal_error", "Input should be 'float' or 'base64'")
	}
	x.valid()
	if n == 0 {
		n = x.p.Dimensions
	}
	a := poolingAnswer[embedding]{listMeta: x.listMeta("embd-", model), Usage: usageOf(inputs...)}
	for i, text := range inputs {
		e := embedding{Index: i, Object: "embedding"}
		v := vector(text, n)
		e.Embedding = v
		if format == "base64" {
			var b []byte
			for _, f := range v {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
			}
			e.Embedding = base64.StdEncoding.EncodeToString(b)
		}
		a.Data = append(a.Data, e)
	}
	x.replyPadded(a)
}

type rerankDocument struct {
	Text string `json:"text"`
}

type rerankResult struct {
	Index    int            `json:"index"`
	Document rerankDocument `json:"document"`
	Score    float64        `json:"relevance_score"`
}

// sglRerankResult is SGLang's form of a result; its answer is a bare list.
type sglRerankResult struct {
	Score    float64 `json:"score"`
	Document string  `json:"document"`
	Index    int     `json:"index"`
}

// rerank is POST /v1/rerank.
func (x *exchange) rerank() {
	o := x.obj
	o.need("query")
	o.need("documents")
	query, documents, top := o.text("query"), o.texts("documents"), o.positive("top_n")
	model := x.model()
	x.valid()
	results := make([]rerankResult, len(documents))
	for i, d := range documents {
		results[i] = rerankResult{i, rerankDocument{d}, relevance(query, d)}
	}
	slices.SortStableFunc(results, func(a, b rerankResult) int {
		switch {
		case a.Score > b.Score:
			return -1
		case a.Score < b.Score:
			return 1
		}
		return 0
	})
	if top > 0 {
		results = results[:min(top, len(results))]
	}
	if x.p.Flavour == SGLang {
		list := make([]sglRerankResult, len(results))
		for i, r := range results {
			list[i] = sglRerankResult{r.Score, r.Document.Text, r.Index}
		}
		x.replyPadded(list)
		return
	}
	x.replyPadded(struct {
		ID      string         `json:"id"`
		Model   string         `json:"model"`
		Usage   promptUsage    `json:"usage"`
		Results []rerankResult `json:"results"`
	}{x.id("rerank-"), model, usageOf(append(documents, query)...), results})
}

type scoreData struct {
	Index  int     `json:"index"`
	Object string  `json:"object"`
	Score  float64 `json:"score"`
}

// score is POST /v1/score, in vLLM's form (text_1, text_2) or SGLang's (query,
// items, label_token_ids).
func (x *exchange) score() {
	o := x.obj
	if o.has("items") {
		x.sglScore()
		return
	}
	o.need("text_1")
	o.need("text_2")
	left, right := o.texts("text_1"), o.texts("text_2")
	model := x.model()
	if len(left) != 1 && len(left) != len(right) {
		o.fail("text_1", "value_error", "Input lengths must be either 1:1, 1:N or N:N")
	}
	x.valid()
	a := poolingAnswer[scoreData]{listMeta: x.listMeta("score-", model), Usage: usageOf(append(left, right...)...)}
	for i, text := range right {
		a.Data = append(a.Data, scoreData{i, "score", relevance(left[min(i, len(left)-1)], text)})
	}
	x.replyPadded(a)
}

func (x *exchange) sglScore() {
	o := x.obj
	var labels []int64
	if !o.decode("label_token_ids", &labels) {
		o.fail("label_token_ids", "missing", "label_token_ids must be provided")
	}
	query, items := o.text("query"), o.texts("items")
	model := x.model()
	x.valid()
	scores := make([][]float64, len(items))
	for i, item := range items {
		for _, label := range labels {
			scores[i] = append(scores[i], relevance(query+item, detokenize([]int64{label})))
		}
	}
	x.replyPadded(struct {
		Scores [][]float64 `json:"scores"`
		Model  string      `json:"model"`
		Usage  promptUsage `json:"usage"`
		Object string      `json:"object"`
	}{scores, model, usageOf(append(items, query)...), "scoring"})
}

type classData struct {
	Index   int       `json:"index"`
	Label   string    `json:"label"`
	Probs   []float64 `json:"probs"`
	Classes int       `json:"num_classes"`
}

// classify is POST /v1/classify.
func (x *exchange) classify() {
	o := x.obj
	o.need("input")
	inputs := o.texts("input")
	model := x.model()
	x.valid()
	a := poolingAnswer[classData]{listMeta: x.listMeta("classify-", model), Usage: usageOf(inputs...)}
	for i, text := range inputs {
		p := relevance(text, "class")
		label := "LABEL_0"
		if p < 0.5 {
			label = "LABEL_1"
		}
		a.Data = append(a.Data, classData{i, label, []float64{p, 1 - p}, 2})
	}
	x.replyPadded(a)
}

// moderationCategories are OpenAI's.
var moderationCategories = []string{
	"harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent", "self-harm",
	"self-harm/instructions", "self-harm/intent", "sexual", "sexual/minors", "violence", "violence/graphic",
}

type moderation struct {
	Flagged    bool                `json:"flagged"`
	Categories map[string]bool     `json:"categories"`
	Scores     map[string]float64  `json:"category_scores"`
	Applied    map[string][]string `json:"category_applied_input_types"`
}

// moderations is POST /v1/moderations: nothing is ever flagged.
func (x *exchange) moderations() {
	o := x.obj
	o.need("input")
	var parts []json.RawMessage
	n := 1
	if o.decode("input", &parts) {
		n = len(parts)
	}
	model := x.model()
	x.valid()
	results := make([]moderation, n)
	for i := range results {
		m := moderation{Categories: map[string]bool{}, Scores: map[string]float64{}, Applied: map[string][]string{}}
		for _, c := range moderationCategories {
			m.Categories[c], m.Scores[c], m.Applied[c] = false, 0.0001, []string{"text"}
		}
		results[i] = m
	}
	x.replyPadded(struct {
		ID      string       `json:"id"`
		Model   string       `json:"model"`
		Results []moderation `json:"results"`
	}{x.id("modr-"), model, results})
}
