package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/musterhq/muster/internal/hostname"
)

// profilerHeadWait limits the time from the start of a connection to the end of its request header.
const profilerHeadWait = 10 * time.Second

// startProfiler serves Go's profiler on an address of its own; with "" it does nothing.
func startProfiler(addr string, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("pprof: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: loopbackHost(mux), ReadHeaderTimeout: profilerHeadWait}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the profiler stopped", "error", err)
		}
	}()
	log.Info("profiler listening", "address", l.Addr().String())
	return func() { _ = server.Close() }, nil
}

// loopbackHost refuses requests whose Host names anything but this machine. A web page can make its own host name resolve to
// a loopback address (DNS rebinding) and would then read profiles from the developer's browser.
func loopbackHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !hostname.IsLoopback(host) {
			http.Error(w, "The profiler answers requests for localhost and loopback addresses only.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
