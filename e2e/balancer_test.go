package e2e

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/internal/porttest"
)

// balancer is a load balancer without affinity in front of a cluster's nodes: it sends each request to the next node, and skips nodes that do not accept the
// connection.
type balancer struct {
	address string // host:port, below localhost: browsers have one cookie for all ports of it
	nodes   []*service
	next    atomic.Uint32
}

// newBalancer returns a balancer with an address. It answers after serve was called with the nodes.
func newBalancer(t *testing.T) *balancer {
	_, port, err := net.SplitHostPort(porttest.Free(t))
	must(t, err)
	return &balancer{address: net.JoinHostPort("localhost", port)}
}

func (b *balancer) url() string { return "http://" + b.address }

func (b *balancer) serve(t *testing.T, nodes []*service) {
	t.Helper()
	b.nodes = nodes
	l, err := net.Listen("tcp", b.address)
	must(t, err)
	server := &http.Server{Handler: &httputil.ReverseProxy{
		Transport: b,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.Host = "http", r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}
	t.Cleanup(func() { server.Close() })
	go func() { _ = server.Serve(l) }() // ends with Close
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	var body []byte
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	for range b.nodes {
		node := b.nodes[int(b.next.Add(1))%len(b.nodes)]
		out := r.Clone(r.Context())
		out.URL.Host, out.Body = node.address, io.NopCloser(bytes.NewReader(body))
		answer, err = http.DefaultTransport.RoundTrip(out)
		if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
			break
		}
	}
	return answer, err
}
