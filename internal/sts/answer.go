package sts

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/domain/excerpt"
	"github.com/musterhq/muster/internal/gamelift"
)

// Error codes. Source: the API reference of AWS STS, and its common errors.
const (
	codeAccessDenied    = "AccessDenied"
	codeValidation      = "ValidationError"
	codeInvalidAction   = "InvalidAction"
	codeMalformed       = "MalformedQueryString"
	codeMalformedPolicy = "MalformedPolicyDocument"
	codeInternal        = "InternalFailure"
)

// refusal is the error of a well-formed request that is refused.
type refusal struct{ code, message string }

func (r *refusal) Error() string { return r.code + ": " + r.message }

func (r *refusal) status() int {
	if r != nil && (r.code == codeAccessDenied || r.code == codeRejectedClaim) {
		return http.StatusForbidden
	}
	return http.StatusBadRequest
}

// invalid refuses the value of a field.
func invalid(field, value, want string) error {
	return &refusal{codeValidation, "1 validation error detected: Value '" + excerpt.Short(value) + "' at '" + field + "' failed to satisfy constraint: want " + want}
}

// codes are the query protocol's error codes for refusals of signatures.
var codes = map[string]string{
	"UnrecognizedClientException": "InvalidClientTokenId",
	"InvalidSignatureException":   "SignatureDoesNotMatch",
	"InternalServiceException":    codeInternal,
}

func codeOf(code string) string {
	if mine, ok := codes[code]; ok {
		return mine
	}
	return strings.TrimSuffix(code, "Exception")
}

// metadata is at the end of every answer.
type metadata struct {
	RequestID string `xml:"ResponseMetadata>RequestId"`
}

func (m *metadata) setID(id string) { m.RequestID = id }

type errorAnswer struct {
	XMLName   xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ ErrorResponse"`
	Type      string   `xml:"Error>Type"`
	Code      string   `xml:"Error>Code"`
	Message   string   `xml:"Error>Message"`
	RequestID string   `xml:"RequestId"`
}

func refuse(w http.ResponseWriter, problem *refusal, status int, id string) {
	kind := "Sender"
	if status >= http.StatusInternalServerError {
		kind = "Receiver"
	}
	write(w, status, &errorAnswer{Type: kind, Code: problem.code, Message: problem.message, RequestID: id}, id)
}

// Refuse answers a request that is refused before it reaches an operation.
func Refuse(w http.ResponseWriter, message string) {
	refuse(w, &refusal{codeAccessDenied, message}, http.StatusForbidden, gamelift.NewRequestID())
}

func write(w http.ResponseWriter, status int, answer any, id string) {
	if x, ok := answer.(interface{ setID(string) }); ok {
		x.setID(id)
	}
	body, err := xml.Marshal(answer)
	if err != nil {
		panic("sts: answer: " + err.Error()) // strings always marshal
	}
	header := w.Header()
	header.Set("X-Amzn-Requestid", id)
	header.Set("Content-Type", "text/xml")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client has closed the connection
}
