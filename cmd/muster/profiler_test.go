package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestProfilerAnswersLoopbackHostsOnly(t *testing.T) {
	handler := loopbackHost(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"localhost:6060": http.StatusOK, "127.0.0.1:6060": http.StatusOK, "[::1]:6060": http.StatusOK, "localhost": http.StatusOK,
		"rebound.example.com:6060": http.StatusForbidden, "10.0.0.1:6060": http.StatusForbidden, "": http.StatusForbidden,
	} {
		r := httptest.NewRequest(http.MethodGet, "/debug/pprof/", nil)
		r.Host = host
		answer := httptest.NewRecorder()
		if handler.ServeHTTP(answer, r); answer.Code != want {
			t.Errorf("Host %q: %d, want %d", host, answer.Code, want)
		}
	}
}
