// Package edge checks every request before its door does. Where TLS is required, it refuses requests that could have been read on the
// way. In development mode, which requires no credentials, it refuses requests that a web page sent.
package edge

import (
	"net/http"
	"net/netip"
	"strings"

	"github.com/musterhq/muster/internal/clientaddress"
)

// Transport decides whether a request reached this process over TLS.
type Transport struct {
	Proxies *clientaddress.Proxies // whose X-Forwarded-Proto is trusted

	// BehindTLS says that a proxy in Proxies that does not send X-Forwarded-Proto receives its requests over TLS.
	BehindTLS bool
}

// forwardedProto is the scheme by which a client reached a proxy. Every common proxy can send it.
const forwardedProto = "X-Forwarded-Proto"

// Trusts reports whether an address is one of the proxies.
func (t *Transport) Trusts(address netip.Addr) bool {
	return t.Proxies.Trust(address)
}

// Secure reports whether the client used TLS, with this process or with a trusted proxy. TLS between the proxy and this process says nothing about the client.
func (t *Transport) Secure(r *http.Request) bool {
	peer, ok := peerOf(r)
	trusted := ok && t.Trusts(peer)
	if said, https := schemeSaid(r); trusted && said {
		return https
	}
	return r.TLS != nil || trusted && t.BehindTLS
}

// Private reports whether a request could not be read on a network: it is Secure, or it did not leave this machine. A proxy on
// this machine that is trusted and says that its client used plain HTTP makes a request public.
func (t *Transport) Private(r *http.Request) bool {
	if t.Secure(r) {
		return true
	}
	peer, ok := peerOf(r)
	if !ok || !peer.IsLoopback() {
		return false
	}
	said, _ := schemeSaid(r)
	return !said || !t.Trusts(peer)
}

// schemeSaid reads X-Forwarded-Proto. A chain of proxies may list one scheme for each hop: all of them must be encrypted.
func schemeSaid(r *http.Request) (said, https bool) {
	values := r.Header[forwardedProto]
	if len(values) == 0 {
		return false, false
	}
	for _, value := range values {
		for scheme := range strings.SplitSeq(value, ",") {
			if scheme = strings.ToLower(strings.TrimSpace(scheme)); scheme != "https" && scheme != "wss" {
				return true, false
			}
		}
	}
	return true, true
}

// peerOf is the address at the other end of the connection.
func peerOf(r *http.Request) (netip.Addr, bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return peer.Addr().Unmap(), err == nil
}
