package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// pause waits between attempts, longer each time: 0.2, 0.8, 3.2 seconds.
func pause(ctx context.Context, attempt int) error {
	select {
	case <-time.After(200 * time.Millisecond << (2 * attempt)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errStalled is the cause with which an attempt without progress ends.
var errStalled = errors.New("the store made no progress for too long")

// received is the body of an answer. Each part restarts the attempt's timer, so that a large object may take any time over a slow network.
type received struct {
	io.Reader
	timer *time.Timer
}

func (r *received) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.timer.Reset(bodyWait)
	}
	return n, err
}

// sending is the same for the body of an upload. What was read from it may still be on its way, which the time allows for.
type sending struct {
	io.Reader
	timer *time.Timer
	sent  int64
}

func (s *sending) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if n > 0 {
		s.sent += int64(n)
		s.timer.Reset(headWait + time.Duration(min(s.sent, heldMax)/slowest)*time.Second)
	}
	return n, err
}

// try makes several attempts if an error may be temporary. An attempt restarts its timer when it makes progress, and ends when the timer fires.
func (c *Client) try(ctx context.Context, what string, attempt func(context.Context, *time.Timer) error) error {
	for n := 0; ; n++ {
		one, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(bodyWait, func() { cancel(errStalled) })
		err := attempt(one, timer)
		timer.Stop()
		cancel(nil)
		if err == nil {
			return nil
		}
		if refused, ok := errors.AsType[*Error](err); ok {
			refused.What = what + " in " + c.place.String()
		} else {
			if context.Cause(one) == errStalled {
				err = errStalled
			}
			err = &Failure{what + " in " + c.place.String(), err}
		}
		if n+1 == attemptsMax || !again(err) || ctx.Err() != nil {
			return err
		}
		if c.pause(ctx, n) != nil {
			return err
		}
	}
}

// ask sends one request; an empty key means the bucket. It returns an answer only if the request succeeded.
func (c *Client) ask(ctx context.Context, method, key string, query url.Values, header http.Header, body io.ReadCloser, size int64, sum string) (*http.Response, error) {
	to, err := url.Parse(c.base)
	if err != nil {
		return nil, err
	}
	if key != "" {
		to.Path += "/" + c.full(key)
	} else if c.place.HostStyle {
		to.Path = "/"
	}
	to.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	r, err := http.NewRequestWithContext(ctx, method, to.String(), body)
	if err != nil {
		return nil, err
	}
	r.ContentLength = size
	if size == 0 {
		r.Body = http.NoBody
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("X-Amz-Content-Sha256", sum)
	credentials, err := c.credentials.Retrieve(ctx)
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	if err := c.signer.SignHTTP(ctx, credentials, r, sum, "s3", c.place.Region, time.Now()); err != nil {
		return nil, err
	}
	by := c.http
	if size > 0 {
		by = c.uploads
	}
	answer, err := by.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 == 2 {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, errorMax)) // a part of the text is better than none
	return nil, errorOf("", answer.StatusCode, text)
}
