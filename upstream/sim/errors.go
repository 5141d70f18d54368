package sim

import (
	"fmt"
	"net/http"
	"strings"
)

// apiError is a request that the engine refuses, or a failure that it pretends.
type apiError struct {
	status  int
	message string
	param   string // the member that is at fault, or ""
}

// Error returns the message.
func (e *apiError) Error() string { return e.message }

func badRequest(param, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...), param: param}
}

// refuse answers with err and ends the surface.
func (x *exchange) refuse(err *apiError) {
	x.replyError(err)
	panic(endOfAnswer{})
}

func (x *exchange) replyError(err *apiError) { x.replyJSON(err.status, x.errorShape(err)) }

// errorShape returns err in the shape of the surface and the flavour:
// Anthropic's on /v1/messages, SGLang's own on /generate, SGLang's flat one and
// vLLM's or OpenAI's nested one elsewhere.
func (x *exchange) errorShape(err *apiError) any {
	switch {
	case x.r.URL.Path == "/v1/messages":
		return anthropicError(err)
	case x.r.URL.Path == "/generate":
		return nestedError[generateErrorInfo]{generateErrorInfo{err.message}}
	case x.p.Flavour == SGLang:
		return flatError{"error", err.message, engineType(err.status), nullable(err.param), err.status}
	case x.p.Flavour == OpenAI:
		return nestedError[openaiErrorInfo]{openaiErrorInfo{err.message, openaiType(err.status), nullable(err.param), nil}}
	}
	return nestedError[vllmErrorInfo]{vllmErrorInfo{err.message, engineType(err.status), nullable(err.param), err.status}}
}

type nestedError[T any] struct {
	Error T `json:"error"`
}

type generateErrorInfo struct {
	Message string `json:"message"`
}

type vllmErrorInfo struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}

type openaiErrorInfo struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

type flatError struct {
	Object  string  `json:"object"`
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}

type anthropicErrorBody struct {
	Type  string             `json:"type"`
	Error anthropicErrorInfo `json:"error"`
}

type anthropicErrorInfo struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func anthropicError(err *apiError) anthropicErrorBody {
	kind := "api_error"
	switch err.status {
	case http.StatusBadRequest:
		kind = "invalid_request_error"
	case http.StatusNotFound:
		kind = "not_found_error"
	case http.StatusRequestEntityTooLarge:
		kind = "request_too_large"
	case http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case http.StatusServiceUnavailable, 529:
		kind = "overloaded_error"
	}
	return anthropicErrorBody{"error", anthropicErrorInfo{kind, err.message}}
}

// engineType names an error as vLLM and SGLang do.
func engineType(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "BadRequestError"
	case http.StatusNotFound:
		return "NotFoundError"
	case http.StatusInternalServerError:
		return "InternalServerError"
	}
	return strings.ReplaceAll(http.StatusText(status), " ", "") + "Error"
}

func openaiType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
