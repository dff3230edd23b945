package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/identity"
)

// conn is a keep-alive connection of an API client. It writes HTTP itself, because a client that uses net/http or an SDK costs as much as
// the service: on one machine, the benchmark would measure its own load.
type conn struct {
	protocol *protocol
	host     string
	tcp      net.Conn
	signer   signer

	body, canonical, out []byte
	in                   []byte // what was read
	begin, end           int    // the unused part of it
}

func dial(ctx context.Context, addr string, p *protocol, key identity.AccessKey) (*conn, error) {
	var d net.Dialer
	tcp, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{protocol: p, host: addr, tcp: tcp, signer: signer{keyID: key.ID, secret: key.Secret}, in: make([]byte, 8<<10)}, nil
}

func (c *conn) close() { _ = c.tcp.Close() }

// apiError is an answer other than 200.
type apiError struct {
	operation string
	status    int
	body      string
}

func (e *apiError) Error() string {
	return fmt.Sprintf("%s: HTTP %d: %.300s", e.operation, e.status, e.body)
}

// call sends a request and returns the body of its answer, which is valid until the next call.
func (c *conn) call(operation string, members ...member) ([]byte, error) {
	c.body = c.protocol.appendBody(c.body[:0], members...)
	return c.send(operation, c.body)
}

// send is call with an encoded body.
func (c *conn) send(operation string, body []byte) ([]byte, error) {
	c.writeRequest(operation, body)
	if _, err := c.tcp.Write(c.out); err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	status, answer, err := c.readAnswer()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	if status != 200 {
		return nil, &apiError{operation, status, string(answer)}
	}
	return answer, nil
}

func (c *conn) writeRequest(operation string, body []byte) {
	p, s := c.protocol, &c.signer
	s.at(time.Now())

	b := append(c.canonical[:0], "POST\n"...)
	b = c.appendPath(b, operation)
	b = append(b, "\n\n"...)
	b = p.canonical(b, c, operation, len(body))
	b = append(append(b, '\n'), p.signedHeaders...)
	b = append(append(b, '\n'), s.hashBody(body)...)
	c.canonical = b

	b = append(c.out[:0], "POST "...)
	b = c.appendPath(b, operation)
	b = append(append(b, " HTTP/1.1\r\nHost: "...), c.host...)
	b = append(b, "\r\n"...)
	if p.target != "" {
		b = append(append(append(b, p.target...), operation...), "\r\n"...)
	}
	b = append(append(b, p.headers...), "X-Amz-Date: "...)
	b = append(append(b, s.date...), "\r\nAuthorization: AWS4-HMAC-SHA256 Credential="...)
	b = append(append(append(b, s.keyID...), '/'), s.credential.Scope...)
	b = append(append(b, ", SignedHeaders="...), p.signedHeaders...)
	b = append(append(b, ", Signature="...), s.sign(c.canonical)...)
	b = strconv.AppendInt(append(b, "\r\nContent-Length: "...), int64(len(body)), 10)
	c.out = append(append(b, "\r\n\r\n"...), body...)
}

func (c *conn) appendPath(b []byte, operation string) []byte {
	b = append(b, c.protocol.path...)
	if c.protocol.target == "" {
		b = append(b, operation...)
	}
	return b
}

// readAnswer reads one answer with a Content-Length, which is all that the service sends.
func (c *conn) readAnswer() (status int, body []byte, err error) {
	head := -1
	for {
		if head = bytes.Index(c.in[c.begin:c.end], []byte("\r\n\r\n")); head >= 0 {
			break
		}
		if err := c.more(0); err != nil {
			return 0, nil, err
		}
	}
	lines := c.in[c.begin : c.begin+head+2]
	if len(lines) < len("HTTP/1.1 200") || string(lines[:9]) != "HTTP/1.1 " {
		return 0, nil, fmt.Errorf("no HTTP/1.1 answer: %.100q", lines)
	}
	status, err = strconv.Atoi(string(lines[9:12]))
	if err != nil {
		return 0, nil, fmt.Errorf("status of an answer: %w", err)
	}
	const lengthHeader = "\r\nContent-Length: "
	at := bytes.Index(lines, []byte(lengthHeader))
	if at < 0 {
		return 0, nil, fmt.Errorf("answer without Content-Length: %.300q", lines)
	}
	digits, _, _ := bytes.Cut(lines[at+len(lengthHeader):], []byte{'\r'})
	length, err := strconv.Atoi(string(digits))
	if err != nil {
		return 0, nil, fmt.Errorf("content length of an answer: %w", err)
	}
	c.begin += head + 4
	for c.end-c.begin < length {
		if err := c.more(length); err != nil {
			return 0, nil, err
		}
	}
	body = c.in[c.begin : c.begin+length]
	c.begin += length
	return status, body, nil
}

// more reads further bytes, with room for need bytes from begin on.
func (c *conn) more(need int) error {
	if c.begin > 0 {
		c.end = copy(c.in, c.in[c.begin:c.end])
		c.begin = 0
	}
	if c.end == len(c.in) || need > len(c.in) {
		c.in = append(make([]byte, 0, max(need, 2*len(c.in))), c.in[:c.end]...)
		c.in = c.in[:cap(c.in)]
	}
	n, err := c.tcp.Read(c.in[c.end:])
	c.end += n
	return err
}

// textAfter returns the text of a known length that begins with prefix and follows a member's name: both protocols write names and such
// texts unescaped. It is empty if there is none.
func textAfter(answer []byte, name, prefix string, length int) string {
	at := bytes.Index(answer, []byte(name))
	if at < 0 {
		return ""
	}
	rest := answer[at+len(name):]
	// The next name or value begins within the few bytes of a separator or a head.
	at = bytes.Index(rest[:min(len(rest), 8+len(prefix))], []byte(prefix))
	if at < 0 || len(rest) < at+length {
		return ""
	}
	return string(rest[at : at+length])
}
