package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
)

// flowPath begins the path of every call of player flow.
const flowPath = "/playerflow/v1/"

// flowConn is a keep-alive connection of players' clients. It writes HTTP itself, for the same reason as conn.
type flowConn struct {
	host string
	tcp  net.Conn
	in   *bufio.Reader
	out  []byte
}

func dialFlow(ctx context.Context, addr string) (*flowConn, error) {
	var d net.Dialer
	tcp, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &flowConn{host: addr, tcp: tcp, in: bufio.NewReader(tcp)}, nil
}

func (c *flowConn) close() { _ = c.tcp.Close() }

// requests numbers the calls: like clients, each sends its own X-Request-Id.
var requests atomic.Uint64

// post makes one call, such as player/Party.SetReady.
func (c *flowConn) post(call, token string, body []byte) (status int, answer []byte, err error) {
	b := append(append(append(c.out[:0], "POST "+flowPath...), call...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, c.host...), "\r\nContent-Type: application/json\r\nX-Request-Id: bench-"...)
	b = strconv.AppendUint(b, requests.Add(1), 10)
	if token != "" {
		b = append(append(b, "\r\nAuthorization: Bearer "...), token...)
	}
	b = strconv.AppendInt(append(b, "\r\nContent-Length: "...), int64(len(body)), 10)
	c.out = append(append(b, "\r\n\r\n"...), body...)
	if _, err := c.tcp.Write(c.out); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", call, err)
	}
	r, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", call, err)
	}
	answer, err = io.ReadAll(r.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", call, err)
	}
	return r.StatusCode, answer, nil
}

// must is post for calls that must succeed.
func (c *flowConn) must(call, token string, body []byte) ([]byte, error) {
	status, answer, err := c.post(call, token, body)
	if err == nil && status != http.StatusOK {
		err = &apiError{call, status, string(answer)}
	}
	return answer, err
}

// flowCall is must for calls that are made once.
func flowCall[O any](c *flowConn, call, token string, body any) (out O, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return out, err
	}
	answer, err := c.must(call, token, text)
	if err != nil {
		return out, err
	}
	err = json.Unmarshal(answer, &out)
	return out, err
}

// stand is the part of an answer with the player's state.
type stand struct {
	Flow struct {
		Seq  uint64
		Keys struct {
			Party string `json:"PARTY_ID"`
			Match string `json:"MATCHMAKING_ID"`
			Game  string `json:"GAME_INSTANCE_ID"`
		}
	}
}

// seqOf returns the number of the player's last event in an answer, which has no other "seq".
func seqOf(answer []byte) uint64 {
	_, rest, _ := bytes.Cut(answer, []byte(`"seq":`))
	return leadingNumber(rest)
}

func leadingNumber(text []byte) (n uint64) {
	for _, c := range text {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

// flowConns are connections for workers.
type flowConns []*flowConn

func dialAll(ctx context.Context, addr string, n int) (all flowConns, err error) {
	for range n {
		c, err := dialFlow(ctx, addr)
		if err != nil {
			all.close()
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (x flowConns) close() {
	for _, c := range x {
		c.close()
	}
}

// pool lends the connections, one at a time to each caller.
func (x flowConns) pool() chan *flowConn {
	pool := make(chan *flowConn, len(x))
	for _, c := range x {
		pool <- c
	}
	return pool
}
