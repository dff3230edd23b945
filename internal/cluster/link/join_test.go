package link

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/cluster/trust"
	"github.com/musterhq/muster/internal/logtest"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/waittest"
)

func newToken(t testing.TB, a *trust.Authority, addresses ...string) trust.Token {
	t.Helper()
	token, err := trust.NewToken(a, addresses...)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func now() time.Time { return start }

// greet is an Options.Join.
func greet(_ context.Context, from netip.Addr, request []byte) ([]byte, error) {
	return append([]byte("hello "+from.String()+" "), request...), nil
}

func TestJoin(t *testing.T) {
	a := newAuthority(t, cluster)
	l := open(t, newIdentity(t, a, "n1", 0), func(o *Options) { o.Join = greet })
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := silent.Addr().String()
	_ = silent.Close()
	for _, token := range []trust.Token{newToken(t, a, l.Advertised()), newToken(t, a, dead, l.Advertised())} {
		answer, err := Join(t.Context(), token, now, []byte(`{"node":"n2"}`))
		if err != nil || string(answer) != `hello 127.0.0.1 {"node":"n2"}` {
			t.Errorf("got %q, %v", answer, err)
		}
	}
	if _, err := Join(t.Context(), newToken(t, a, dead), now, []byte("x")); err == nil || errors.Is(err, ErrUnanswered) {
		t.Errorf("no node at the address: %v", err)
	}
	if _, err := Join(t.Context(), newToken(t, newAuthority(t, cluster), l.Advertised()), now, []byte("x")); !errors.Is(err, trust.ErrUntrusted) {
		t.Errorf("another fingerprint: %v, want ErrUntrusted", err)
	}
}

// Each address has its own time: nodes that do not answer leave enough for the next one.
func TestJoinBesideSilentNodes(t *testing.T) {
	a := newAuthority(t, cluster)
	l := open(t, newIdentity(t, a, "n1", 0), func(o *Options) { o.Join = greet })
	var addresses []string
	for range 3 {
		silent, err := net.Listen("tcp", "127.0.0.1:0") // connects, and does not take part in the handshake
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		addresses = append(addresses, silent.Addr().String())
	}
	const wait = 300 * time.Millisecond
	answer, err := join(t.Context(), newToken(t, a, append(addresses, l.Advertised())...), now, []byte("x"), wait, 2*wait)
	if err != nil || string(answer) != "hello 127.0.0.1 x" {
		t.Errorf("got %q, %v", answer, err)
	}
}

func TestLargestRequestAndAnswer(t *testing.T) {
	a := newAuthority(t, cluster)
	l := open(t, newIdentity(t, a, "n1", 0), func(o *Options) {
		o.Join = func(_ context.Context, _ netip.Addr, request []byte) ([]byte, error) {
			if bytes.HasPrefix(request, []byte("more")) {
				return make([]byte, joinBytesMax+1), nil
			}
			return request, nil
		}
	})
	token := newToken(t, a, l.Advertised())
	large := bytes.Repeat([]byte("x"), joinBytesMax)
	if answer, err := Join(t.Context(), token, now, large); err != nil || !bytes.Equal(answer, large) {
		t.Errorf("64 KiB: got %d bytes, %v", len(answer), err)
	}
	for name, request := range map[string][]byte{"too large": append(large, 'x'), "empty": nil, "too large an answer": []byte("more")} {
		if _, err := Join(t.Context(), token, now, request); !errors.Is(err, ErrUnanswered) {
			t.Errorf("%s: %v, want ErrUnanswered", name, err)
		}
	}
}

// joinConn returns a connection of a joining node, which uses the protocol but ignores its bounds.
func joinConn(t testing.TB, l *Link) *tls.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", l.Advertised(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{string(joining)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRequestsThatAreNone(t *testing.T) {
	a := newAuthority(t, cluster)
	l := open(t, newIdentity(t, a, "n1", 0), func(o *Options) {
		o.joinWait = 100 * time.Millisecond
		o.Join = func(context.Context, netip.Addr, []byte) ([]byte, error) {
			t.Error("a request was answered")
			return nil, errors.New("no")
		}
	})
	size := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	for name, sent := range map[string][]byte{
		"nothing":      nil,
		"half a size":  {0, 0},
		"half of it":   append(size(10), "hello"...),
		"empty":        size(0),
		"too large":    size(joinBytesMax + 1),
		"much larger":  size(1 << 31),
		"text":         []byte("GET / HTTP/1.1\r\n\r\n"),
		"without size": []byte(`{"node":"n2"}`),
	} {
		before := l.refusals(byJoin)
		c := joinConn(t, l)
		_, _ = c.Write(sent)
		wantEnd(t, name, c)
		waittest.Until(t, "it is counted", func() bool { return l.refusals(byJoin) == before+1 })
	}
}

// A request that arrives in single bytes costs the peer its budget.
func TestRequestInSingleBytesIsDropped(t *testing.T) {
	a := newAuthority(t, cluster)
	l := open(t, newIdentity(t, a, "n1", 0), func(o *Options) { o.joinWait, o.Join = time.Hour, greet })
	c := joinConn(t, l)
	if _, err := c.Write(binary.BigEndian.AppendUint32(nil, joinBytesMax)); err != nil {
		t.Fatal(err)
	}
	for range joinBytesMax {
		if _, err := c.Write([]byte("x")); err != nil {
			return // the link has closed the connection before the request was complete
		}
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := c.Read(make([]byte, 1)); n > 0 {
		t.Errorf("the request was answered, %v", err)
	}
}

func TestJoinHandlersThatFail(t *testing.T) {
	a := newAuthority(t, cluster)
	var log logtest.Log
	l := open(t, newIdentity(t, a, "n1", 0), func(o *Options) {
		o.Panics, o.Log = panics.New(slog.New(slog.DiscardHandler)), slog.New(slog.NewTextHandler(&log, nil))
		o.Join = func(ctx context.Context, from netip.Addr, request []byte) ([]byte, error) {
			switch string(request) {
			case "panic":
				panic("a defect")
			case "error":
				return nil, errors.New("the disk is full")
			}
			return greet(ctx, from, request)
		}
	})
	token := newToken(t, a, l.Advertised())
	for _, request := range []string{"panic", "error"} {
		if _, err := Join(t.Context(), token, now, []byte(request)); !errors.Is(err, ErrUnanswered) {
			t.Errorf("%s: %v, want ErrUnanswered", request, err)
		}
	}
	if !strings.Contains(log.String(), "the disk is full") {
		t.Errorf("the log does not have the reason: %s", log.String())
	}
	if _, err := Join(t.Context(), token, now, []byte("x")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// An address gets a few answers at a time; peers that have not sent their request do not count.
func TestJoinsOfOneAddress(t *testing.T) {
	a := newAuthority(t, cluster)
	began, goOn := make(chan struct{}), make(chan struct{})
	l := open(t, newIdentity(t, a, "n1", 0), func(o *Options) {
		o.Join = func(ctx context.Context, from netip.Addr, request []byte) ([]byte, error) {
			began <- struct{}{}
			<-goOn
			return greet(ctx, from, request)
		}
	})
	for range 2 * joinsMax {
		joinConn(t, l) // silent
	}
	token := newToken(t, a, l.Advertised())
	answered := make(chan error, joinsPerAddress)
	for range joinsPerAddress {
		go func() {
			_, err := Join(t.Context(), token, now, []byte("x"))
			answered <- err
		}()
		<-began
	}
	if _, err := Join(t.Context(), token, now, []byte("x")); !errors.Is(err, ErrUnanswered) {
		t.Errorf("one too many: %v, want ErrUnanswered", err)
	}
	close(goOn)
	for range joinsPerAddress {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	waittest.Until(t, "all are done", func() bool {
		l.joins.mu.Lock()
		defer l.joins.mu.Unlock()
		return l.joins.all == 0 && len(l.joins.from) == 0
	})
}

func TestAllJoins(t *testing.T) {
	var j joins
	address := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}) }
	for i := range joinsMax {
		if !j.begin(address(i)) {
			t.Fatalf("number %d was refused", i)
		}
	}
	if j.begin(address(joinsMax)) {
		t.Error("more than the bound were accepted")
	}
	j.end(address(0))
	if !j.begin(address(joinsMax)) {
		t.Error("a free place was refused")
	}
}

func TestJoinEndsWithItsContext(t *testing.T) {
	a := newAuthority(t, cluster)
	began := make(chan struct{})
	l := open(t, newIdentity(t, a, "n1", 0), func(o *Options) {
		o.Join = func(ctx context.Context, _ netip.Addr, _ []byte) ([]byte, error) {
			close(began)
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if _, err := Join(ctx, newToken(t, a, l.Advertised()), now, []byte("x")); !errors.Is(err, ErrUnanswered) {
		t.Errorf("got %v, want ErrUnanswered", err)
	}
}
