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
	if why := complaint(body); why != "" {
		w.note(why)
	} else if answer.StatusCode >= http.StatusBadRequest {
		w.note(r.URL.Host + " answered " + answer.Status)
	}
	return answer, nil
}

func (w watched) note(text string) {
	text = strings.ToValidUTF8(text[:min(len(text), 1000)], "")
	w.x.trouble.Store(&text)
}

// complaint is the error in an answer: a problem, or a challenge that failed. RFC 8555, 6.7 and 8.
func complaint(body []byte) string {
	var said struct {
		Detail     string
		Challenges []struct{ Error struct{ Detail string } }
	}
	if json.Unmarshal(body, &said) != nil {
		return "" // certificates
	}
	for _, c := range said.Challenges {
		if c.Error.Detail != "" {
			return c.Error.Detail
		}
	}
	return said.Detail
}

func (x *Certificates) lastError() string {
	if text := x.trouble.Load(); text != nil {
		return *text
	}
	return ""
}
