package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

// rawClient sends correctly signed bodies that no SDK would write.
type rawClient struct {
	s      *service
	id     string
	secret string
	http   *http.Client
}

// rawClient returns a client with its own loopback address, so that limits by address do not affect honest callers in the test.
func (s *service) rawClient(id, secret, from string) *rawClient {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 100}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &rawClient{s, id, secret, &http.Client{Transport: transport, Timeout: patience}}
}

// request returns a signed request without its body.
func (c *rawClient) request(operation string, body []byte, inCBOR bool) *http.Request {
	url := c.s.url() + "/"
	if inCBOR {
		url += "service/GameLift/operation/" + operation
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	if inCBOR {
		r.Header.Set("Smithy-Protocol", "rpc-v2-cbor")
		r.Header.Set("Content-Type", "application/cbor")
	} else {
		r.Header.Set("X-Amz-Target", "GameLift."+operation)
		r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	}
	hash := sha256.Sum256(body)
	credentials := aws.Credentials{AccessKeyID: c.id, SecretAccessKey: c.secret}
	if err := v4.NewSigner().SignHTTP(context.Background(), credentials, r, hex.EncodeToString(hash[:]), "gamelift", region, time.Now()); err != nil {
		panic(err)
	}
	return r
}

// send returns the status of the answer; 0 if the service closed the connection.
func (c *rawClient) send(operation string, body []byte, inCBOR bool) (status int, answer string) {
	resp, err := c.http.Do(c.request(operation, body, inCBOR))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// resident returns the resident memory of the service's process in bytes: current and maximum.
func (s *service) resident() (now, highest int64) {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	must(s.t, err)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.Fields(value + " 0")[0], 10, 64)
		switch name {
		case "VmRSS":
			now = kib << 10
		case "VmHWM":
			highest = kib << 10
		}
	}
	return now, highest
}

// processorTime returns the processor time of the service's process.
func (s *service) processorTime() time.Duration {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	must(s.t, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond // clock ticks are a hundredth of a second on Linux
}

// honest calls the service repeatedly and counts failures until it is stopped.
type honest struct {
	stop          context.CancelFunc
	done          sync.WaitGroup
	calls, failed atomic.Int64
	last          atomic.Pointer[string]
}

func beHonest(api *gamelift.Client) *honest {
	ctx, stop := context.WithCancel(context.Background())
	h := &honest{stop: stop}
	h.done.Go(func() {
		for ctx.Err() == nil {
			if _, err := api.ListLocations(ctx, &gamelift.ListLocationsInput{}); err != nil && ctx.Err() == nil {
				text := err.Error()
				h.last.Store(&text)
				h.failed.Add(1)
			}
			h.calls.Add(1)
		}
	})
	return h
}

func (h *honest) check(t *testing.T) {
	t.Helper()
	h.stop()
	h.done.Wait()
	if n := h.failed.Load(); n > 0 || h.calls.Load() == 0 {
		t.Errorf("%d of %d honest calls failed, the last with %s", n, h.calls.Load(), aws.ToString(h.last.Load()))
	}
}

func cborHead(major byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{major<<5 | 26}, n)
}

func cborText(s string) []byte { return append(cborHead(3, uint32(len(s))), s...) }

// Any player can extract the key from a client. Bodies of many small structures decode to fifty times their size.
// This test runs before the parallel tests: the service's memory depends on how fast garbage is collected.
func TestAttackWorstBodiesOfAClientKey(t *testing.T) {
	s, admin := startProduction(t)
	id, secret := s.key("client")
	const size = 7_900_000
	deep := "\xa1\x70PlayerAttributes\xa1\x61a\xa1\x63SDM\xa1\x61b\x01"
	cbor := func(item string, limit int) []byte {
		n := min(size/len(item), limit)
		return append(append(append(cborHead(5, 1), cborText("Players")...), cborHead(4, uint32(n))...), strings.Repeat(item, n)...)
	}
	nested := append(append(append(cborHead(5, 1), cborText("Players")...), 0x9f), []byte(strings.Repeat("\xbf\x70PlayerAttributes\xbf\x61a\xbf\xff\xff\xff", 150_000)+"\xff")...)
	bodies := []struct {
		name   string
		body   []byte
		inCBOR bool
	}{
		{"CBOR players", cbor("\xa0", 16384), true},
		{"CBOR attributes", cbor(deep, 16384), true},
		{"CBOR without lengths", nested, true},
		{"CBOR of 7.9 MB", cbor(deep, size), true},
		{"CBOR unknown members", append(append(append(cborHead(5, 1), cborText("x")...), cborHead(4, 4_000_000)...), bytes.Repeat([]byte{0xa0}, 4_000_000)...), true},
		{"JSON players", []byte(`{"ConfigurationName":"x","Players":[{}` + strings.Repeat(",{}", 1_300_000) + `]}`), false},
		{"JSON attributes", []byte(`{"ConfigurationName":"x","Players":[{}` + strings.Repeat(`,{"PlayerAttributes":{"a":{"SDM":{"b":1}}}}`, 90_000) + `]}`), false},
		{"JSON unknown members", []byte(`{"x":[{}` + strings.Repeat(`,{"a":{}}`, 440_000) + `]}`), false},
		{"JSON digits", []byte(`{"Players":[{"LatencyInMs":{"a":` + strings.Repeat("9", 4_000_000) + `}}]}`), false},
	}
	// The most that a caller may make the service hold: bodies and decoded inputs of one address, with garbage, in addition to
	// the heap's minimum of 64 MiB.
	const most = 700 << 20
	others := beHonest(admin)
	for _, each := range bodies {
		var parallel sync.WaitGroup
		for range 64 {
			parallel.Go(func() {
				c := s.rawClient(id, secret, "127.0.0.2")
				for range 2 {
					if status, answer := c.send("StartMatchmaking", each.body, each.inCBOR); status == http.StatusOK || status >= 500 {
						t.Errorf("%s: %d %.200s", each.name, status, answer)
					}
				}
				c.http.CloseIdleConnections()
			})
		}
		parallel.Wait()
		if _, highest := s.resident(); highest > most {
			t.Fatalf("after %s the service has taken %d MiB, want at most %d", each.name, highest>>20, most>>20)
		}
	}
	others.check(t)
	_, highest := s.resident()
	t.Logf("at most %d MiB; %d honest calls meanwhile", highest>>20, others.calls.Load())
	s.staysHealthy()
}

// A CBOR bignum of a few megabytes would cost the decoder half a minute of processor time for formatting its error.
func TestAttackCBORBignum(t *testing.T) {
	t.Parallel()
	s, _ := startProduction(t)
	id, secret := s.key("client")
	c := s.rawClient(id, secret, "127.0.0.2")
	for _, tag := range []byte{0xc2, 0xc3} {
		number := append(append([]byte{tag}, cborHead(2, 3_900_000)...), bytes.Repeat([]byte{0xff}, 3_900_000)...)
		for _, member := range []string{"MaximumPlayerSessionCount", "Unknown"} {
			body := append(append(cborHead(5, 1), cborText(member)...), number...)
			before := s.processorTime()
			status, answer := c.send("CreateGameSession", body, true)
			if status < 400 || status >= 500 {
				t.Errorf("%s: %d %.200s", member, status, answer)
			}
			if took := s.processorTime() - before; took > 2*time.Second {
				t.Errorf("%s: %s of processor time", member, took)
			}
		}
	}
	s.staysHealthy()
}

// Bodies that stop in the middle occupy no slot that another client needs, and lose their own.
func TestAttackHalfSentBodies(t *testing.T) {
	t.Parallel()
	s, admin := startProduction(t)
	id, _ := s.key("client") // only the id is needed, which is no secret
	c := s.rawClient(id, "guessed", "127.0.0.2")
	body := make([]byte, 4_000_000)
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
	var open []net.Conn
	for range 200 {
		r := c.request("StartGameSessionPlacement", body, false)
		conn, err := dialer.Dial("tcp", s.address)
		must(t, err)
		defer conn.Close()
		open = append(open, conn)
		var head bytes.Buffer
		fmt.Fprintf(&head, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", s.address, len(body))
		must(t, r.Header.Write(&head))
		head.WriteString("\r\n")
		must(t, conn.SetDeadline(time.Now().Add(patience)))
		if _, err := conn.Write(append(head.Bytes(), body[:100_000]...)); err != nil && !isGone(err) {
			t.Fatal(err)
		}
	}
	// Meanwhile the service accepts large bodies of others.
	large := strings.Repeat("x", 256<<10)
	for range 20 {
		_, err := admin.CreateGameSession(t.Context(), &gamelift.CreateGameSessionInput{
			FleetId: aws.String("fleet-00000000-0000-0000-0000-000000000000"), Location: aws.String("custom-x"), MaximumPlayerSessionCount: aws.Int32(1), GameSessionData: &large,
		})
		if err == nil || !strings.Contains(err.Error(), "NotFoundException") {
			t.Errorf("a large body of another caller: %v", err)
		}
	}
	// The service gives up each of them, although the client stays.
	slow := 0
	for _, conn := range open {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			if !isGone(err) {
				t.Errorf("a half-sent body was not given up: %v", err)
			}
			continue
		}
		if resp.StatusCode == http.StatusRequestTimeout {
			slow++
		}
		resp.Body.Close()
	}
	if slow == 0 {
		t.Error("no slow body was answered with 408")
	}
	s.staysHealthy()
}

// isGone reports whether the other side has closed the connection.
func isGone(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return !ok || !timeout.Timeout()
}
