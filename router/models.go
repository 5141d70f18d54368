package router

import (
	"net/url"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/configs"
)

// modelObject is one model as the OpenAI API lists it.
type modelObject struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	// Root is the model that an alias stands for.
	Root string `json:"root,omitempty"`
	// MaxModelLen is the context window in tokens, as vLLM names it.
	MaxModelLen int `json:"max_model_len,omitempty"`
}

type modelList struct {
	Object string        `json:"object"`
	Data   []modelObject `json:"data"`
}

// listModels prepares the answers of the models surface.
func (s *snapshot) listModels(cfg *configs.Config, now time.Time) {
	list := modelList{Object: "list", Data: []modelObject{}}
	s.listOnes = map[string][]byte{}
	add := func(id, root string, window configs.Tokens) {
		if s.listOnes[id] != nil { // of an earlier pool, which requests go to
			return
		}
		m := modelObject{ID: id, Object: "model", Created: now.Unix(), OwnedBy: "sluice", Root: root, MaxModelLen: int(window)}
		list.Data = append(list.Data, m)
		s.listOnes[id] = marshal(m)
	}
	for i := range cfg.Pools {
		p := &cfg.Pools[i]
		for _, id := range p.Models {
			add(id, "", p.ContextWindows[id])
		}
		aliases := make([]string, 0, len(p.Aliases))
		for a := range p.Aliases {
			aliases = append(aliases, a)
		}
		slices.Sort(aliases)
		for _, a := range aliases {
			add(a, p.Aliases[a], p.ContextWindows[p.Aliases[a]])
		}
	}
	s.list = marshal(list)
}

// answerLocally answers the surfaces that need no worker.
func (q *request) answerLocally() {
	status, body := fasthttp.StatusOK, []byte(nil)
	switch q.endpoint.kind {
	case kindModels:
		body = q.snap.list
	case kindModel:
		id, err := url.PathUnescape(string(q.path[len(modelsPrefix):]))
		if err == nil {
			body = q.snap.listOnes[id]
		}
		if body == nil {
			q.refuse(fasthttp.StatusNotFound, codeModelNotFound, "the model is not served here", "model")
			return
		}
	case kindAlive:
		body = []byte(`{"status":"ok"}`)
	case kindReady:
		body = []byte(`{"status":"ready"}`)
		switch {
		case q.router.draining.Load():
			status, body = fasthttp.StatusServiceUnavailable, []byte(`{"status":"draining"}`)
		case !q.snap.canServe():
			status, body = fasthttp.StatusServiceUnavailable, []byte(`{"status":"no healthy workers"}`)
		}
	}
	resp := &q.ctx.Response
	resp.Header.SetStatusCode(status)
	resp.Header.SetContentType("application/json")
	resp.Header.SetBytesKV(nameRequestID, q.id)
	resp.SetBodyRaw(body)
	q.outcome = outcomeOK
	q.finish(status, "")
}
