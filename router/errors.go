package router

import (
	"github.com/bytedance/sonic"
	"github.com/valyala/fasthttp"

	"sluice/probe"
)

// errorCode is the value of x-router-error-code and of error.code: what the
// router itself, not a worker, says about a request.
type errorCode string

const (
	codeBadRequest        errorCode = "bad_request"
	codeContractViolation errorCode = "sampling_contract_violation"
	codeParamsViolation   errorCode = "request_params_violation"
	codeUnauthorized      errorCode = "unauthorized"
	codeForbidden         errorCode = "forbidden"
	codeNotFound          errorCode = "not_found"
	codeModelNotFound     errorCode = "model_not_found"
	codeMethodNotAllowed  errorCode = "method_not_allowed"
	codePayloadTooLarge   errorCode = "payload_too_large"
	codeUnsupportedMedia  errorCode = "unsupported_media_type"
	codeInternal          errorCode = "internal_error"
	codeUnreachable       errorCode = "upstream_unreachable"
	codeBodyIncomplete    errorCode = "upstream_body_incomplete"
	codeTimeout           errorCode = "upstream_timeout"
	codeOverloaded        errorCode = "overloaded"
	codeNoWorkers         errorCode = "no_healthy_workers"
	headerErrorCode                 = "x-router-error-code"
	tooLargeText                    = "request body is larger than this deployment allows"
	notObjectText                   = "invalid request: body must be a JSON object"
)

// shape is how an error looks on a surface.
type shape uint8

const (
	shapeOpenAI shape = iota
	shapeAnthropic
	shapeResponses // as shapeOpenAI, but for an error event within a stream
)

func shapeOf(s probe.Surface) shape {
	switch s {
	case probe.SurfaceMessages:
		return shapeAnthropic
	case probe.SurfaceResponses:
		return shapeResponses
	}
	return shapeOpenAI
}

// errorBody is the OpenAI shape of an error.
type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Message string    `json:"message"`
	Type    string    `json:"type"`
	Code    errorCode `json:"code"`
	Param   *string   `json:"param"`
}

// anthropicBody is the Anthropic shape of an error.
type anthropicBody struct {
	Type  string          `json:"type"`
	Error anthropicDetail `json:"error"`
}

type anthropicDetail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// responsesEvent is the error event of the responses surface.
type responsesEvent struct {
	Type    string    `json:"type"`
	Code    errorCode `json:"code"`
	Message string    `json:"message"`
	Param   *string   `json:"param"`
}

// writeError makes the answer of ctx an error of the router.
func writeError(ctx *fasthttp.RequestCtx, sh shape, status int, code errorCode, msg, param string) {
	resp := &ctx.Response
	resp.ResetBody()
	resp.Header.SetStatusCode(status)
	resp.Header.SetContentType("application/json")
	resp.Header.Set(headerErrorCode, string(code))
	resp.SetBodyRaw(errorJSON(sh, status, code, msg, param))
}

func errorJSON(sh shape, status int, code errorCode, msg, param string) []byte {
	if sh == shapeAnthropic {
		return marshal(anthropicBody{Type: "error", Error: anthropicDetail{Type: anthropicType(status), Message: msg}})
	}
	d := errorDetail{Message: msg, Type: "invalid_request_error", Code: code}
	if status >= fasthttp.StatusInternalServerError {
		d.Type = "server_error"
	}
	if param != "" {
		d.Param = &param
	}
	return marshal(errorBody{Error: d})
}

// anthropicType is Anthropic's name for a status, as its API reference lists
// them.
func anthropicType(status int) string {
	switch status {
	case fasthttp.StatusUnauthorized:
		return "authentication_error"
	case fasthttp.StatusForbidden:
		return "permission_error"
	case fasthttp.StatusNotFound:
		return "not_found_error"
	case fasthttp.StatusRequestEntityTooLarge:
		return "request_too_large"
	case fasthttp.StatusTooManyRequests:
		return "rate_limit_error"
	case fasthttp.StatusServiceUnavailable:
		return "overloaded_error"
	case fasthttp.StatusGatewayTimeout:
		return "timeout_error"
	}
	if status >= fasthttp.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

// errorEvent is the one event that ends a broken stream.
func errorEvent(sh shape, status int, code errorCode, msg string) []byte {
	switch sh {
	case shapeAnthropic:
		return frame("event: error\ndata: ", errorJSON(sh, status, code, msg, ""))
	case shapeResponses:
		return frame("event: error\ndata: ", marshal(responsesEvent{Type: "error", Code: code, Message: msg}))
	}
	return frame("data: ", errorJSON(sh, status, code, msg, ""))
}

func frame(prefix string, data []byte) []byte {
	return append(append([]byte(prefix), data...), "\n\n"...)
}

// marshal encodes one of the structs above, which cannot fail.
func marshal(v any) []byte {
	b, err := sonic.Marshal(v)
	if err != nil {
		panic("BUG: cannot encode an error: " + err.Error())
	}
	return b
}
