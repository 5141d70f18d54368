package sim

import (
	"net/http"
	"strconv"
)

// introspect serves /sim/: what the engine has seen, and switches.
//
//	GET  /sim/requests[?n=N]  the latest requests, oldest first
//	GET  /sim/stats           the counts
//	POST /sim/reset           forgets both
//	POST /sim/health?status=N what /health answers from now on
func (e *Engine) introspect(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /sim/requests":
		list := e.Requests()
		if n, err := strconv.Atoi(r.URL.Query().Get("n")); err == nil && n >= 0 && n < len(list) {
			list = list[len(list)-n:]
		}
		tell(w, http.StatusOK, struct {
			Requests []Request `json:"requests"`
		}{list})
	case "GET /sim/stats":
		tell(w, http.StatusOK, e.Stats())
	case "POST /sim/reset":
		e.Reset()
		tell(w, http.StatusOK, e.Stats())
	case "POST /sim/health":
		status, err := parseStatus(r.URL.Query().Get("status"))
		if err != nil {
			tell(w, http.StatusBadRequest, detail{err.Error()})
			return
		}
		e.SetHealth(status)
		tell(w, http.StatusOK, struct {
			Status int `json:"status"`
		}{status})
	default:
		tell(w, http.StatusNotFound, detail{"Not Found"})
	}
}

func tell(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error means that nobody listens any more.
	_, _ = w.Write(append(marshal(v), '\n'))
}
