package acmecert

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// answerBytes limits the size of the authority's answers. A certificate chain has a few KiB.
const answerBytes = 1 << 20

// watched ends requests to the authority on Close and keeps the last error: autocert reports neither failed renewals nor why
// the authority could not validate the host.
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

// badNonce is the problem type for a nonce that the authority no longer knows. Any request may get it (RFC 8555, 6.5), also between a failed
// challenge and the end of the attempt.
const badNonce = "urn:ietf:params:acme:error:badNonce"

// complaint returns the error in an answer: a problem with its type, or a failed challenge. RFC 8555, 6.7 and 8.
func complaint(body []byte) (kind, why string) {
	var said struct {
		Type, Detail string
		Challenges   []struct{ Error struct{ Detail string } }
	}
	if json.Unmarshal(body, &said) != nil {
		return "", "" // a certificate chain, which is not JSON
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
