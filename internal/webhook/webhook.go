// Package webhook is the common part of all webhooks: the signature, the client that
// sends them, and the allowed targets of those about players.
package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/hostname"
	"github.com/musterhq/muster/internal/tracing"
)

const (
	// SignatureHeader has the signature and time of a message: "t=<Unix seconds>,v1=<hex of HMAC-SHA256(key, t + "." + body)>". While a receiver has several keys, because the cell's
	// secret is being rotated, it is that of the oldest one, which the receiver has.
	SignatureHeader = "X-Muster-Signature"
	// NextSignatureHeader has the time and the signatures by the later keys then, one behind the other: "t=…,v1=…,v1=…". So a receiver may change over at any moment.
	NextSignatureHeader = "X-Muster-Signature-Next"
)

// Sign returns the value of SignatureHeader or NextSignatureHeader. Each receiver has keys of its own; see identity.CellSecret.WebhookKeys.
func Sign(now time.Time, body []byte, keys ...string) string {
	t := strconv.FormatInt(now.Unix(), 10)
	header := "t=" + t
	for _, key := range keys {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(t + "."))
		mac.Write(body)
		header += ",v1=" + hex.EncodeToString(mac.Sum(nil))
	}
	return header
}

// NewClient makes a client that keeps so many connections to one receiver. It follows no redirect: the operator chooses
// the receiver, not the receiver itself. An answer whose head has more than answerMax bytes is an error: callers name receivers, too, and a head is read into memory
// before anything looks at it.
func NewClient(connections int) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxResponseHeaderBytes = connections, answerMax
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Message is a message to one receiver.
type Message struct {
	URL    string
	Keys   []string    // sign it, the latest first; at least one
	Header http.Header // beside User-Agent and the signature; may be nil
	Body   []byte
}

// Post sends a message, with the trace that ctx belongs to, and returns the answer, whose body the caller closes. Its errors do not contain the
// URL, which may contain a secret.
func Post(ctx context.Context, client *http.Client, now time.Time, m *Message) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return nil, withoutURL(err)
	}
	maps.Copy(request.Header, m.Header)
	request.Header.Set("User-Agent", "Muster")
	tracing.Inject(ctx, request.Header)
	oldest := len(m.Keys) - 1
	request.Header.Set(SignatureHeader, Sign(now, m.Body, m.Keys[oldest]))
	if oldest > 0 {
		request.Header.Set(NextSignatureHeader, Sign(now, m.Body, m.Keys[:oldest]...))
	}
	answer, err := client.Do(request)
	return answer, withoutURL(err)
}

func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// answerMax is how many bytes of an answer's head, and of an ignored body, are read: of the body so that its connection can be used again.
const answerMax = 64 << 10

// Tell sends a message whose answer only confirms it: any 2xx does.
func Tell(ctx context.Context, client *http.Client, now time.Time, m *Message) error {
	answer, err := Post(ctx, client, now, m)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, answerMax)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("it answered %s", answer.Status)
	}
	return nil
}

// CheckURL requires a URL that keeps data about players from being read on the way.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.Fragment != "":
		return fmt.Errorf("%.100q, want a URL such as https://backend.example.com/hooks", text)
	case u.Scheme == "https", u.Scheme == "http" && hostname.IsLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%.100q, want https, or http to this machine", text)
}

// PlainURL is a URL without its possibly secret parts, for logs and listings: of many receivers the path is the secret.
func PlainURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(no URL)"
	}
	plain := u.Scheme + "://" + u.Host
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		plain += "/…"
	}
	return plain
}
