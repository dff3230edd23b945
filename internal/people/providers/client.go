package providers

import (
	"fmt"
	"io"
	"net"
	"net/http"
)

// newClient returns a client that follows no redirect to another host, and limits the size of answers.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes, t.MaxIdleConnsPerHost, t.MaxConnsPerHost = headerBytesMax, 4, 2*exchangesAtOnce
	t.DialContext = (&net.Dialer{Timeout: answerTimeout / 2}).DialContext
	return &http.Client{Timeout: answerTimeout, Transport: bounded{t}, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.Method != http.MethodGet || via[0].Method != http.MethodGet || r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme || len(via) > 3 {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

// bounded fails the reading of an answer that exceeds answerBytesMax.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = &boundedBody{ReadCloser: answer.Body, left: answerBytesMax}
	}
	return answer, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", answerBytesMax)
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
