package edge

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Pages refuses requests of web pages to a service that requires no credentials: a browser on the same machine would send their
// requests here. A page of another site is recognised by Origin and Sec-Fetch-Site. A page whose own name was made to resolve
// to this machine (DNS rebinding) is of the same origin for its browser, and is recognised by Host.
type Pages struct {
	Names   []string                                  // by which clients may call this service, besides loopback names and addresses
	Allowed func(r *http.Request, origin string) bool // pages of other sites that may send this request; nil: none
}

// check returns why a request is refused; "" if it is allowed.
func (p *Pages) check(r *http.Request) string {
	if !p.named(r.Host) {
		return fmt.Sprintf("Host %.100q is not a name of this service: in development mode it answers to localhost, loopback addresses and "+
			"the host of --public-url", r.Host)
	}
	origin := r.Header.Get("Origin")
	site := r.Header.Get("Sec-Fetch-Site")
	foreign := site == "cross-site" || site == "same-site" || origin != "" && !p.own(r, origin)
	if !foreign || origin != "" && p.Allowed != nil && p.Allowed(r, origin) {
		return ""
	}
	return fmt.Sprintf("a web page of another site sent this request (Origin %.100q, Sec-Fetch-Site %.20q): in development mode, which asks "+
		"for no credentials, only its own pages may", origin, site)
}

// named reports whether a Host header names this service. A client that sends none is no browser.
func (p *Pages) named(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(p.Names, host) {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// own reports whether an origin is this service. A proxy may have rewritten Host, but not the name that the browser knows.
func (p *Pages) own(r *http.Request, origin string) bool {
	page, err := url.Parse(origin)
	if err != nil || page.Host == "" {
		return false // "null" is the origin of pages that hide theirs
	}
	return strings.EqualFold(page.Host, r.Host) || slices.Contains(p.Names, strings.ToLower(page.Hostname()))
}
