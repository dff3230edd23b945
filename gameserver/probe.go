package gameserver

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/amazon-gamelift/amazon-gamelift-servers-go-server-sdk/v5/common"
)

const (
	connectPatience = 3 * time.Minute  // for a service that cannot be reached; the SDK's own is 184 s
	askTimeout      = 20 * time.Second // for one answer
	askPauseMax     = 30 * time.Second
	reasonBytes     = 2 << 10 // of an error's text
)

// ConnectError is the reason why the service did not accept this process. It is inside an *Error with the kind ErrUnauthorized for
// 401 and 403, ErrWrongEndpoint for other permanent failures, or ErrUnavailable.
type ConnectError struct {
	URL    string // of the service
	Status int    // of HTTP; 0: no answer
	Reason string // the service's own text, up to 2 KiB
	Err    error  // why there was no answer; nil with a status
}

func (e *ConnectError) Error() string {
	switch {
	case e.Status != 0:
		return fmt.Sprintf("%s answered %d %s: %s", e.URL, e.Status, http.StatusText(e.Status), e.Reason)
	case e.Reason != "":
		return fmt.Sprintf("connect to %s: %v; it said: %s", e.URL, e.Err, e.Reason)
	}
	return fmt.Sprintf("connect to %s: %v", e.URL, e.Err)
}

func (e *ConnectError) Unwrap() error { return e.Err }

// kind returns the kind of the error that contains e.
func (e *ConnectError) kind() error {
	switch status := e.Status; {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return ErrUnauthorized
	case status == http.StatusNotFound, status >= 200 && status < 400: // some other web server
		return ErrWrongEndpoint
	case status == 0 && endsHere(e.Err):
		return ErrWrongEndpoint
	}
	return ErrUnavailable
}

// endsHere reports whether every later attempt would fail, too: the service's certificate is not trusted or for another host, the port
// does not speak TLS, or the host name does not exist.
func endsHere(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsNotFound
	}
	return errors.Is(err, http.ErrSchemeMismatch)
}

// canAsk reports whether the service can be asked before the SDK connects. The answer of the cloud's endpoints is not documented, and
// only the SDK knows the credentials of a container.
func (o *Options) canAsk() bool {
	u, err := url.Parse(o.WebSocketURL)
	return err == nil && !strings.HasSuffix(u.Hostname(), ".amazonaws.com") && !strings.HasSuffix(u.Hostname(), ".amazonaws.com.cn") &&
		os.Getenv("GAMELIFT_COMPUTE_TYPE") != "CONTAINER"
}

// awaitService asks the service whether it would accept this process, until it accepts or refuses for good. The SDK alone repeats every
// attempt for three minutes, whatever the reason, and logs nothing meanwhile.
func awaitService(ctx context.Context, o Options, log *slog.Logger) error {
	began := time.Now()
	for attempt, pause := 1, time.Second; ; attempt, pause = attempt+1, min(2*pause, askPauseMax) {
		refused := askService(ctx, o)
		switch {
		case refused == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("connect to %s: %w", o.WebSocketURL, ctx.Err())
		case refused.kind() != ErrUnavailable || time.Since(began)+pause > connectPatience:
			return refused
		}
		log.Warn("the game session service cannot be reached yet", "attempt", attempt, "retry_in", pause, "error", refused)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("connect to %s: %w", o.WebSocketURL, ctx.Err())
		}
	}
}

// askService sends the SDK's connection request with a version of WebSocket that does not exist. A service checks the credentials and
// then refuses the version with 426, so that there is no connection. Services that check the version first answer 400.
func askService(ctx context.Context, o Options) *ConnectError {
	u, err := url.Parse(o.WebSocketURL)
	if err != nil {
		return &ConnectError{URL: o.WebSocketURL, Err: err}
	}
	u.Scheme = strings.Replace(u.Scheme, "ws", "http", 1)
	u.RawQuery = o.query(time.Now()).Encode()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return &ConnectError{URL: o.WebSocketURL, Err: err}
	}
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "0", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
		"User-Agent": "muster-gameserver",
	} {
		ask.Header.Set(name, value)
	}
	// As the SDK connects: no proxy, HTTP/1.1, the host's authorities.
	transport := &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}, DisableKeepAlives: true}
	answer, err := transport.RoundTrip(ask)
	if err != nil {
		return &ConnectError{URL: o.WebSocketURL, Err: err}
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusUpgradeRequired, http.StatusBadRequest, http.StatusSwitchingProtocols:
		return nil
	}
	said, _ := io.ReadAll(io.LimitReader(answer.Body, reasonBytes)) // only the status decides; the text is for people
	return &ConnectError{URL: o.WebSocketURL, Status: answer.StatusCode, Reason: shortened(string(said))}
}

// shortened shortens a service's text for an error.
func shortened(text string) string {
	return strings.ToValidUTF8(strings.TrimSpace(text[:min(len(text), reasonBytes)]), "")
}

// query identifies this process, as the SDK does.
func (o *Options) query(now time.Time) url.Values {
	who := url.Values{common.PidKey: {o.ProcessID}, common.ComputeIDKey: {o.HostID}, common.FleetIDKey: {o.FleetID}}
	signed := who.Encode()
	who.Set(common.SdkVersionKey, common.SdkVersion)
	who.Set(common.SdkLanguageKey, common.SdkLanguage)
	if o.AuthToken != "" {
		who.Set(common.AuthTokenKey, o.AuthToken)
		return who
	}
	date := now.UTC().Format("20060102T150405Z")
	scope := date[:8] + "/" + o.Region + "/gamelift/aws4_request"
	hash := sha256.Sum256([]byte(signed))
	key := []byte("AWS4" + o.SecretKey)
	for _, part := range append(strings.Split(scope, "/"), "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hex.EncodeToString(hash[:])) {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part)) // never fails
		key = h.Sum(nil)
	}
	for name, value := range map[string]string{
		common.AuthTokenKey: "SigV4", "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Credential": o.AccessKey + "/" + scope, "X-Amz-Date": date,
		"X-Amz-Signature": hex.EncodeToString(key),
	} {
		who.Set(name, value)
	}
	if o.SessionToken != "" {
		who.Set("X-Amz-Security-Token", o.SessionToken)
	}
	return who
}
