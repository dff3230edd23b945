package acmecert

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// answerBytes bounds the answers of the authority. A chain of certificates has some KiB.
const answerBytes = 1 << 20

// watched ends requests to the authority with Close, and keeps the last error: autocert reports neither failed renewals nor why
// the authority could not check the host.
type watched struct{ x *Certificates }

func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.x.ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(w.x.ctx, cancel)()
	answer, err := w.x.config.HTTP.RoundTrip(r.WithContext(ctx))
	if err != nil {
		w.note(err.Error())
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerBytes))
	if err != nil {
		w.note(err.Error())
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	switch kind, why := complaint(body); {
	case kind == badNonce: // the client repeats the request with a fresh one
	case why != "":
		w.note(why)
	case answer.StatusCode >= http.StatusBadRequest:
		w.note(r.URL.Host + " answered " + answer.Status)
	}
	return answer, nil
}

func (w watched) note(text string) {
	text = strings.ToValidUTF8(text[:min(len(text), 1000)], "")
	w.x.trouble.Store(&text)
}

// badNonce is the type of the problem that an authority no longer knows a nonce. It may say so of any request (RFC 8555, 6.5), also between a failed
// challenge and the end of the attempt.
const badNonce = "urn:ietf:params:acme:error:badNonce"

// complaint is the error in an answer: a problem with its type, or a challenge that failed. RFC 8555, 6.7 and 8.
func complaint(body []byte) (kind, why string) {
	var said struct {
		Type, Detail string
		Challenges   []struct{ Error struct{ Detail string } }
	}
	if json.Unmarshal(body, &said) != nil {
		return "", "" // certificates
	}
	for _, c := range said.Challenges {
		if c.Error.Detail != "" {
			return "", c.Error.Detail
		}
	}
	return said.Type, said.Detail
}

func (x *Certificates) lastError() string {
	if text := x.trouble.Load(); text != nil {
		return *text
	}
	return ""
}
