package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestSecretRotateOverlap: an overlap that the operators' door cannot express is refused, and does not become the default of 90 days.
func TestSecretRotateOverlap(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s: the command asks the service", r.Method, r.URL)
		_, _ = w.Write([]byte(`{"generations": []}`))
	}))
	defer service.Close()
	env := []string{"HOME=" + t.TempDir(), "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s"}
	for _, overlap := range []string{"500ms", "30m1ms"} {
		if out, err := runForTest(t, env, "secret", "rotate", "--server", service.URL, "--overlap", overlap); err == nil || !strings.Contains(err.Error(), "--overlap") {
			t.Errorf("--overlap %s: %s, %v", overlap, out, err)
		}
	}
}
