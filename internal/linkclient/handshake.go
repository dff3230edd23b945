package linkclient

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/sigv4"
)

// RefusedError is an HTTP answer other than 101.
type RefusedError struct {
	Status int
	Body   string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refused with HTTP %d: %s", e.Status, e.Body)
}

// The key of RFC 6455's own example and the answer to it. A constant key is valid; randomness only matters to proxies.
const (
	wsKey    = "dGhlIHNhbXBsZSBub25jZQ=="
	wsAccept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
)

// defaultPorts are the ports of URLs without one.
var defaultPorts = map[string]string{"ws": "80", "wss": "443"}

func handshake(ctx context.Context, opt *Options) (net.Conn, reader, error) {
	u, err := url.Parse(opt.URL)
	if err != nil {
		return nil, reader{}, err
	}
	dial := opt.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPorts[u.Scheme])))
	if err != nil {
		return nil, reader{}, err
	}
	tcp := conn
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() }) // aborts the calls below
	if u.Scheme == "wss" {
		cfg := &tls.Config{}
		if opt.TLS != nil {
			cfg = opt.TLS.Clone()
		}
		cfg.ServerName = cmp.Or(cfg.ServerName, u.Hostname())
		conn = tls.Client(conn, cfg)
	}
	br := bufio.NewReaderSize(conn, readBuffer)
	err = upgrade(conn, br, u, query(opt))
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = tcp.Close() // of no use
		return nil, reader{}, err
	}
	return conn, newReader(br), nil
}

func upgrade(conn net.Conn, br *bufio.Reader, u *url.URL, query string) error {
	_, err := io.WriteString(conn, "GET "+cmp.Or(u.EscapedPath(), "/")+"?"+query+" HTTP/1.1\r\nHost: "+u.Host+
		"\r\nUser-Agent: gamelift-go-sdk/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "+wsKey+"\r\n\r\n")
	if err != nil {
		return err
	}
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		body, err := io.ReadAll(io.LimitReader(res.Body, 4<<10))
		if err != nil {
			return err
		}
		return &RefusedError{res.StatusCode, strings.TrimSpace(string(body))}
	}
	if got := res.Header.Get("Sec-WebSocket-Accept"); got != wsAccept {
		return fmt.Errorf("Sec-WebSocket-Accept is %q, must be %q", got, wsAccept)
	}
	return nil
}

func query(opt *Options) string {
	if opt.Query != "" {
		return opt.Query
	}
	return url.Values{
		"pID": {opt.Process}, "ComputeId": {opt.Compute}, "FleetId": {opt.Fleet}, "Authorization": {opt.Token},
		"sdkVersion": {cmp.Or(opt.SDKVersion, "5.5.0")}, "sdkLanguage": {cmp.Or(opt.SDKLanguage, "Go")},
		"IdempotencyToken": {"7f1c7d1e-1a0e-4f7e-8d0b-0d4c3c1f5a11"},
	}.Encode()
}

// SigV4Query returns the query of a game server that was started with an access key instead of a token, signed at the given
// time.
func SigV4Query(opt Options, accessKey, secret, region string, at time.Time) string {
	date := at.Format(sigv4.TimeForm) // as in C#: the text ends with Z whatever at's time zone
	credential := sigv4.NewCredential(accessKey, region, "gamelift", at)
	signature := sigv4.NewKey(secret, &credential).Append(nil, date, sigv4.AppendIDs(nil, opt.Compute, opt.Fleet, opt.Process))
	q, err := url.ParseQuery(query(&opt))
	if err != nil {
		panic("linkclient: own query does not parse: " + err.Error())
	}
	q.Set("Authorization", "SigV4")
	q.Set("X-Amz-Algorithm", sigv4.Algorithm)
	q.Set("X-Amz-Credential", credential.String())
	q.Set("X-Amz-Date", date)
	q.Set("X-Amz-Signature", string(signature))
	return q.Encode()
}
