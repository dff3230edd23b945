package webhook

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestTell(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	status := http.StatusOK
	var heard *http.Request
	var body string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		heard, body = r, string(b)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer receiver.Close()
	m := Message{URL: receiver.URL + "/in?secret=hidden", Key: "key", Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte("{}")}
	for _, tc := range []struct {
		status int
		want   string
	}{{200, ""}, {204, ""}, {302, "it answered 302 Found"}, {404, "it answered 404 Not Found"}, {503, "it answered 503 Service Unavailable"}} {
		status = tc.status
		if got := text(Tell(context.Background(), NewClient(1), now, &m)); got != tc.want {
			t.Errorf("status %d: got %q, want %q", tc.status, got, tc.want)
		}
		if body != "{}" || heard.URL.Path != "/in" || heard.Header.Get("Content-Type") != "application/json" || heard.Header.Get(SignatureHeader) != Sign("key", now, m.Body) {
			t.Errorf("the receiver got %q with %v", body, heard.Header)
		}
	}
}

// A URL may hold a secret, and errors are logged.
func TestErrorsDoNotRepeatTheURL(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:1/in?secret=hidden", "http://hidden:%zz/"} {
		err := Tell(context.Background(), NewClient(1), time.Now(), &Message{URL: url, Key: "key"})
		if err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("got %v, want an error without what the URL holds", err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
