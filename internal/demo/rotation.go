package demo

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
)

// rotation distributes requests over the nodes of a cluster, and tries the next one if a node cannot be reached, as a load balancer does.
type rotation struct {
	hosts []string
	next  atomic.Uint64
	http  http.Client
}

func newRotation(endpoints []string) *rotation {
	r := &rotation{}
	for _, e := range endpoints {
		if u, err := url.Parse(e); err == nil {
			r.hosts = append(r.hosts, u.Host)
		}
	}
	return r
}

// Do implements the HTTPClient of the SDK.
func (r *rotation) Do(request *http.Request) (answer *http.Response, err error) {
	for range r.hosts {
		request.URL.Host = r.hosts[r.next.Add(1)%uint64(len(r.hosts))]
		answer, err = r.http.Do(request)
		dial, ok := errors.AsType[*net.OpError](err)
		if !ok || dial.Op != "dial" || request.GetBody == nil {
			break
		}
		if request.Body, err = request.GetBody(); err != nil {
			break
		}
	}
	return answer, err
}
