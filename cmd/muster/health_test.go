package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	answers := map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(answers[r.URL.Path])
		_, _ = io.WriteString(w, `{"path":"`+r.URL.Path+"\"}\n")
	}))
	address := strings.TrimPrefix(service.URL, "http://")
	if out := mustRun(t, []string{"MUSTER_LISTEN=" + address}, "health"); out != "{\"path\":\"/healthz\"}\n" {
		t.Errorf("got %q", out)
	}
	if _, err := runForTest(t, nil, "health", "--listen", address, "--ready"); err == nil || !strings.Contains(err.Error(), "503 Service Unavailable: {\"path\":\"/readyz\"}") {
		t.Errorf("a node that is not ready: %v", err)
	}
	service.Close()
	for listen, want := range map[string]string{address: "no service answers at http://" + address, "8080": "listen"} {
		if _, err := runForTest(t, nil, "health", "--listen", listen); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--listen %s: %v, want %q", listen, err, want)
		}
	}
}
