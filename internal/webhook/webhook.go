// Package webhook is what all messages to receivers outside have in common: how they are signed, and the client that
// carries them.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// SignatureHeader says who sent a message and when: "t=<Unix seconds>,v1=<hex of HMAC-SHA256(key, t + "." + body)>".
const SignatureHeader = "X-Muster-Signature"

// Sign gives the value of SignatureHeader. Each receiver has a key of its own; see identity.CellSecret.WebhookKey.
func Sign(key string, now time.Time, body []byte) string {
	t := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(t + "."))
	mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// NewClient makes a client that keeps so many connections to one receiver. It follows no redirect: who is told was decided
// by the operator, not by the receiver.
func NewClient(connections int) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = connections
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// PlainURL is a URL without what may be secret in it, for logs.
func PlainURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(no URL)"
	}
	return strings.TrimSuffix(u.Scheme+"://"+u.Host+u.Path, "/")
}
