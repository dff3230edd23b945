package gamelift

import (
	"cmp"
	"encoding/xml"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/smithy-go"
)

// STS is another service of AWS, with a protocol of its own. The port answers one of its calls, because
// people check with `aws sts get-caller-identity` whether a profile works.

type stsAnswer struct {
	XMLName   xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ GetCallerIdentityResponse"`
	ARN       string   `xml:"GetCallerIdentityResult>Arn"`
	UserID    string   `xml:"GetCallerIdentityResult>UserId"`
	Account   string   `xml:"GetCallerIdentityResult>Account"`
	RequestID string   `xml:"ResponseMetadata>RequestId"`
}

type stsError struct {
	XMLName   xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ ErrorResponse"`
	Type      string   `xml:"Error>Type"`
	Code      string   `xml:"Error>Code"`
	Message   string   `xml:"Error>Message"`
	RequestID string   `xml:"RequestId"`
}

func (h *Handler) serveSTS(w http.ResponseWriter, r *http.Request, requestID string, pooled *buffers) {
	began := time.Now()
	caller, refused := h.callerIdentity(w, r, pooled)
	h.count(h.calls, getCallerIdentity, refused, began)
	h.answerSTS(w, requestID, caller, refused)
}

func (h *Handler) answerSTS(w http.ResponseWriter, requestID string, caller Caller, refused smithy.APIError) {
	status := http.StatusOK
	var answer any
	if refused != nil {
		status = statusOf(refused.ErrorCode())
		answer = stsError{Type: "Sender", Code: refused.ErrorCode(), Message: refused.ErrorMessage(), RequestID: requestID}
	} else {
		name := cmp.Or(caller.ID, "anonymous")
		answer = stsAnswer{
			ARN: "arn:aws:iam::" + caller.Account + ":user/" + caller.Role.String() + "/" + name, UserID: name,
			Account: caller.Account, RequestID: requestID,
		}
	}
	body, err := xml.Marshal(answer)
	if err != nil {
		panic("gamelift: STS answer: " + err.Error()) // strings always marshal
	}
	header := w.Header()
	header.Set("X-Amzn-Requestid", requestID)
	header.Set("Content-Type", "text/xml")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body) //nolint:errcheck // the client has closed the connection
}

func (h *Handler) callerIdentity(w http.ResponseWriter, r *http.Request, pooled *buffers) (Caller, smithy.APIError) {
	signed, refused := h.verifier.begin(r, "sts")
	if refused != nil {
		discard(w, r)
		return Caller{}, refused
	}
	arriving := body{w: w, r: r, most: stsBodyMax, pool: &h.admission, address: signed.address}
	defer arriving.done()
	if refused := arriving.read(pooled); refused != nil {
		return Caller{}, refused
	}
	form, err := url.ParseQuery(string(pooled.body))
	if err != nil || r.Method != http.MethodPost || form.Get("Action") != "GetCallerIdentity" {
		return Caller{}, commonError("InvalidAction", "only GetCallerIdentity is answered here")
	}
	return h.verifier.finish(r, pooled.body, signed)
}
