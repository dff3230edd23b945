package requests

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/musterhq/muster/internal/tracing"
)

// Headers of a forwarded request. They are trusted only on connections between nodes: those of clients never reach serve.
const (
	forwardedBy     = "Muster-Forwarded-By"     // the node that forwards it
	forwardedFrom   = "Muster-Forwarded-From"   // the address at the other end of the client's connection
	forwardedPublic = "Muster-Forwarded-Public" // set: the request could be read on its way to that node
)

// forwarded is what a node reports about a request that it forwards.
type forwarded struct{ private bool }

type forwardedKey struct{}

// Private returns what the forwarding node reports: whether the request was protected on its way to that node. ok is false if the request was not
// forwarded.
func Private(r *http.Request) (private, ok bool) {
	f, ok := r.Context().Value(forwardedKey{}).(forwarded)
	return f.private, ok
}

// Forwarded reports whether another node has forwarded a request. Such a request is not forwarded again, because two nodes that each take the other
// for the right one would forward it forever.
func Forwarded(r *http.Request) bool {
	_, ok := r.Context().Value(forwardedKey{}).(forwarded)
	return ok
}

// Forward has another node answer the request of a client whom this node has authenticated. The other node authenticates it again. If that node
// cannot be reached, unreachable answers; once it has sent something, the client gets that, or a broken connection.
func (n *Net) Forward(w http.ResponseWriter, r *http.Request, node string, private bool, unreachable func(error)) {
	proxy := httputil.ReverseProxy{
		Transport: n.forwards, FlushInterval: -1, ErrorLog: slog.NewLogLogger(n.config.Log.Handler(), slog.LevelDebug),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", node, p.In.Host
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} { // Rewrite has removed them
				if values := p.In.Header[name]; values != nil {
					p.Out.Header[name] = values
				}
			}
			tracing.Inject(p.In.Context(), p.Out.Header)
			p.Out.Header.Set(forwardedBy, n.config.Self)
			p.Out.Header.Set(forwardedFrom, p.In.RemoteAddr)
			p.Out.Header.Del(forwardedPublic)
			if !private {
				p.Out.Header.Set(forwardedPublic, "1")
			}
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil && !errors.Is(err, errNoMember) {
				panic(http.ErrAbortHandler) // the client has gone
			}
			unreachable(err)
		},
	}
	control := http.NewResponseController(w)
	proxy.ServeHTTP(&answering{w, control}, r)
	_ = control.SetWriteDeadline(time.Now().Add(clientPatience)) // for the end of the answer, because the last part may have been sent long ago
}

// clientPatience is how long a client may take to read a part of the answer.
const clientPatience = time.Minute

// answering is an answer that is aborted if its client reads nothing for clientPatience.
type answering struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Unwrap is for http.ResponseController.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answering) Write(p []byte) (int, error) {
	_ = a.control.SetWriteDeadline(time.Now().Add(clientPatience)) // only connections in tests lack deadlines
	return a.ResponseWriter.Write(p)
}

// serveForwarded restores a forwarded request to its form at the node that received it.
func (n *Net) serveForwarded(h http.Handler, w http.ResponseWriter, r *http.Request) {
	private := r.Header.Get(forwardedPublic) == ""
	r = r.WithContext(context.WithValue(r.Context(), forwardedKey{}, forwarded{private}))
	r.RemoteAddr = r.Header.Get(forwardedFrom)
	for _, name := range []string{forwardedBy, forwardedFrom, forwardedPublic} {
		r.Header.Del(name)
	}
	h.ServeHTTP(w, r)
}
