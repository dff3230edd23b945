package e2e

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/linkclient"
	"github.com/musterhq/muster/internal/porttest"
)

// socketDoor is a WebSocket door for attackers: a request that the service answers with 101.
type socketDoor struct {
	name, address string
	request       func() string // the request line and the headers that only this door requires
	messageMax    int           // bytes
}

// open completes the handshake and returns the connection with a reader for the service's frames.
func (d *socketDoor) open(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := dialTCP(t, d.address)
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, err := io.WriteString(conn, d.request()+"Host: muster.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n")
	must(t, err)
	br := bufio.NewReader(conn)
	answer, err := http.ReadResponse(br, nil)
	must(t, err)
	if answer.StatusCode != http.StatusSwitchingProtocols || answer.Header.Get("Sec-WebSocket-Extensions") != "" {
		t.Fatalf("%s: the handshake was answered with %s %v, want 101 without extensions", d.name, answer.Status, answer.Header)
	}
	return conn, br
}

// closeCode reads until the service closes the connection, and returns the code of its close frame; 0 if there was none.
func closeCode(br *bufio.Reader) int {
	for {
		var head [10]byte
		if _, err := io.ReadFull(br, head[:2]); err != nil {
			return 0
		}
		n := uint64(head[1])
		switch n {
		case 126:
			_, _ = io.ReadFull(br, head[2:4])
			n = uint64(binary.BigEndian.Uint16(head[2:]))
		case 127:
			_, _ = io.ReadFull(br, head[2:10])
			n = binary.BigEndian.Uint64(head[2:])
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(br, payload); err != nil {
			return 0
		}
		if head[0]&0xF == 0x8 && n >= 2 {
			return int(binary.BigEndian.Uint16(payload))
		}
	}
}

// clientFrame returns a masked frame with a mask of zeros.
func clientFrame(first byte, payload string) []byte {
	b := append(frameHead(first, uint64(len(payload))), 0, 0, 0, 0)
	return append(b, payload...)
}

// frameHead returns the header of a masked frame up to its mask, with the shortest form of the length.
func frameHead(first byte, n uint64) []byte {
	switch {
	case n > 0xFFFF:
		return binary.BigEndian.AppendUint64([]byte{first, 0xFF}, n)
	case n > 125:
		return binary.BigEndian.AppendUint16([]byte{first, 0xFE}, uint16(n))
	}
	return []byte{first, 0x80 | byte(n)}
}

// malformed returns frames that no honest client sends, with the close codes with which the service may answer them.
func malformed(messageMax int) map[string]struct {
	sent []byte
	want int
} {
	type frame = struct {
		sent []byte
		want int
	}
	mask := []byte{1, 2, 3, 4}
	all := map[string]frame{
		"the 14 bytes that stopped the process": {append(frameHead(0x81, 1<<63), mask...), 1009},
		"the same as a binary":                  {append(frameHead(0x82, 1<<63), mask...), 1009},
		"the same as a ping":                    {append(frameHead(0x89, 1<<63), mask...), 1002},
		"the same as a close frame":             {append(frameHead(0x88, 1<<63), mask...), 1002},
		"the same behind a fragment":            {append(clientFrame(0x01, "x"), append(frameHead(0x80, 1<<63), mask...)...), 1009},
		"the same without a mask":               {[]byte{0x81, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0}, 1002},
		"the first bit of a length":             {append(frameHead(0x81, 1<<63|5), mask...), 1009},
		"a text that is one byte too long":      {append(frameHead(0x81, uint64(messageMax)+1), mask...), 1009},
		"a length of 5 in two bytes":            {append([]byte{0x81, 0xFE, 0, 5}, "\x00\x00\x00\x00hello"...), 1002},
		"a length of 5 in eight bytes":          {append([]byte{0x81, 0xFF, 0, 0, 0, 0, 0, 0, 0, 5}, "\x00\x00\x00\x00hello"...), 1002},
		"no mask":                               {[]byte{0x81, 2, '{', '}'}, 1002},
		"a control frame in fragments":          {clientFrame(0x09, "x"), 1002},
		"a ping of 126 bytes":                   {clientFrame(0x89, strings.Repeat("x", 126)), 1002},
		"a close frame of 126 bytes":            {clientFrame(0x88, strings.Repeat("x", 126)), 1002},
		"a continuation of nothing":             {clientFrame(0x80, "x"), 1002},
		"a message within a message":            {append(clientFrame(0x01, "x"), clientFrame(0x81, "y")...), 1002},
		"a text that is not UTF-8":              {clientFrame(0x81, "{\"type\":\"\xFF\"}"), 1007},
		"a close frame with half a code":        {clientFrame(0x88, "\x03"), 1002},
		"a close frame with code 1005":          {clientFrame(0x88, "\x03\xED"), 1002},
		"a reason that is not UTF-8":            {clientFrame(0x88, "\x03\xE8\xFF"), 1007},
		"fragments that end too long":           {append(clientFrame(0x01, strings.Repeat("x", messageMax)), clientFrame(0x80, "x")...), 1009},
	}
	for _, bits := range []byte{0x10, 0x20, 0x40, 0x70} {
		all[fmt.Sprintf("reserved bits %#x", bits)] = frame{clientFrame(0x81|bits, "{}"), 1002}
	}
	for _, opcode := range []byte{3, 4, 5, 6, 7, 0xB, 0xC, 0xD, 0xE, 0xF} {
		all[fmt.Sprintf("opcode %#x", opcode)] = frame{clientFrame(0x80|opcode, ""), 1002}
	}
	for power := 31; power < 64; power++ {
		all[fmt.Sprintf("a length of 2^%d", power)] = frame{append(frameHead(0x81, 1<<power), mask...), 1009}
		all[fmt.Sprintf("a length of 2^%d-1", power)] = frame{append(frameHead(0x82, 1<<power-1), mask...), 1009}
	}
	return all
}

// target is a service in production with all its WebSocket doors, and honest clients of each.
type target struct {
	*place
	doors  []*socketDoor
	honest *bareServer
	game   string // of the honest server
	keyID  string
	secret string
}

func newTarget(t *testing.T) *target {
	partner := porttest.Free(t)
	p, _, keyID, secret := productionPlace(t, "--player-flow", "--partner-listen", partner, "--player-logins-per-address", "0")
	x := &target{place: p, keyID: keyID, secret: secret}
	x.honest = p.dial("honest", "")
	x.game = x.honest.host(t, 100)

	basic := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(keyID+":"+secret)) + "\r\n"
	subscription := x.call(t, partner, "partner/Events.Subscribe", basic, `{}`).text("subscription_id")
	processes := 0
	var mu sync.Mutex
	process := func() string {
		mu.Lock()
		defer mu.Unlock()
		processes++
		return "attacker-" + strconv.Itoa(processes)
	}
	players := 0
	player := func() string { // a stream of a new player each time, because one player may not open many
		mu.Lock()
		players++
		name := "mallory-" + strconv.Itoa(players)
		mu.Unlock()
		ticket := x.call(t, partner, "partner/Identity.IssueLoginTicket", basic, `{"player_id":"`+name+`"}`).text("login_ticket")
		return x.call(t, p.address, "player/Session.Login", "", `{"provider":"backend","token":"`+ticket+`"}`).text("access_token")
	}
	x.doors = []*socketDoor{
		{"link with a token", p.address, func() string {
			return "GET /?pID=" + process() + "&ComputeId=" + p.compute + "&FleetId=" + p.fleet + "&sdkVersion=5.4.0&sdkLanguage=Cpp&Authorization=" + p.token + " HTTP/1.1\r\n"
		}, 1<<20 + 1<<10},
		{"link with a signature", p.address, func() string {
			o := linkclient.Options{Process: process(), Compute: p.compute, Fleet: p.fleet}
			return "GET /?" + linkclient.SigV4Query(o, keyID, secret, region, time.Now().UTC()) + " HTTP/1.1\r\n"
		}, 1<<20 + 1<<10},
		{"agent", p.address, func() string {
			return "GET /agent?ComputeName=" + p.compute + "&FleetId=" + p.fleet + "&Authorization=" + p.token + " HTTP/1.1\r\n"
		}, 512 << 10},
		{"stream of a partner", partner, func() string {
			return "GET /playerflow/v1/partner/events?subscription_id=" + subscription + " HTTP/1.1\r\nSec-WebSocket-Protocol: playerflow.events.v1\r\n" + basic
		}, 4 << 10},
		{"stream of a player", p.address, func() string {
			return "GET /playerflow/v1/player/stream HTTP/1.1\r\nSec-WebSocket-Protocol: playerflow.v1\r\nAuthorization: Bearer " + player() + "\r\n"
		}, 4 << 10},
	}
	return x
}

// call makes a call of player flow.
func (x *target) call(t *testing.T, address, path, headers, body string) object {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/playerflow/v1/"+path, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	if name, value, ok := strings.Cut(strings.TrimSpace(headers), ": "); ok {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	var o object
	if answer.StatusCode == http.StatusTooManyRequests { // logins wait for their turn
		time.Sleep(50 * time.Millisecond)
		return x.call(t, address, path, headers, body)
	}
	if err := json.Unmarshal(text, &o); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d: %.500s", path, answer.StatusCode, text)
	}
	return o
}

// goesOn checks that honest clients are still served on their existing connections.
func (x *target) goesOn(t *testing.T) {
	t.Helper()
	psess := x.mustReserve(x.game, "ann")
	must(t, x.honest.AcceptPlayer(t.Context(), x.game, psess))
	must(t, x.honest.RemovePlayer(t.Context(), x.game, psess))
	must(t, x.honest.Heartbeat(t.Context(), true))
}

// unharmed checks, at the end, that nothing panicked.
func (x *target) unharmed(t *testing.T) {
	t.Helper()
	x.goesOn(t)
	x.staysHealthy()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, x.url()+"/metrics", nil)
	must(t, err)
	r.SetBasicAuth(x.keyID, x.secret)
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode != http.StatusOK || bytes.Contains(text, []byte("muster_panics_total{")) || strings.Contains(x.logs.String(), "panic") {
		t.Errorf("metrics: status %d; something panicked:\n%s", answer.StatusCode, x.logs.tail(20))
	}
}

// Every malformed frame, at every door, ends its own connection with a close code, and no other.
func TestAttackMalformedFrames(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	for _, door := range x.doors {
		for name, c := range malformed(door.messageMax) {
			if c.want == 1007 && strings.HasPrefix(door.name, "link") && c.sent[0] == 0x81 {
				continue // SDKs forward texts from games unchecked: such a text is answered, or counted as garbage
			}
			conn, frames := door.open(t)
			if _, err := conn.Write(c.sent); err != nil {
				t.Errorf("%s, %s: %v", door.name, name, err)
			}
			if got := closeCode(frames); got != c.want {
				t.Errorf("%s, %s: closed with %d, want %d", door.name, name, got, c.want)
			}
			conn.Close()
		}
		x.goesOn(t)
	}
	x.unharmed(t)
}

// Clients that send as fast as they can, and do not read the answers, take no memory and do not delay other clients.
func TestAttackFloodsOfFrames(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	before, _ := x.resident()
	var attackers sync.WaitGroup
	stop := make(chan struct{})
	for _, door := range x.doors {
		for name, flood := range map[string][]byte{
			"pings":                   clientFrame(0x89, strings.Repeat("p", 125)),
			"fragments of nothing":    clientFrame(0x00, ""),
			"requests without sense":  clientFrame(0x81, `{"Action":"Nonsense","RequestId":"x","type":"ping"}`),
			"requests that are large": clientFrame(0x81, `{"Action":"StartMatchBackfill","RequestId":"x","type":"ping","Players":["`+strings.Repeat("p", 3000)+`"]}`),
		} {
			conn, _ := door.open(t)
			if name == "fragments of nothing" {
				_, err := conn.Write(clientFrame(0x01, ""))
				must(t, err)
			}
			batch := bytes.Repeat(flood, 64)
			attackers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
					if _, err := conn.Write(batch); err != nil && !isTimeout(err) {
						return // the service has ended the connection
					}
				}
			})
		}
	}
	for range 50 {
		x.goesOn(t)
	}
	_, after := x.resident() // at its highest
	close(stop)
	attackers.Wait()
	if grown := after - before; grown > 256<<20 {
		t.Errorf("16 floods took %d MiB", grown>>20)
	}
	x.unharmed(t)
}

func isTimeout(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout()
}

// A message that never ends is cut off at the size limit of messages, for any fragments.
func TestAttackEndlessMessage(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	for _, door := range x.doors {
		conn, frames := door.open(t)
		code := make(chan int, 1)
		go func() { code <- closeCode(frames) }()
		_, err := conn.Write(clientFrame(0x01, ""))
		must(t, err)
		sent, fragment := 0, clientFrame(0x00, strings.Repeat("x", 1000))
		for err == nil && sent < door.messageMax+100_000 {
			_, err = conn.Write(fragment)
			sent += 1000
		}
		if got := <-code; got != 1009 {
			t.Errorf("%s: closed with %d after %d bytes of one message, want 1009", door.name, got, sent)
		}
		conn.Close()
	}
	x.unharmed(t)
}

// Malformed upgrade requests get an HTTP answer or none; nothing is upgraded, and no other connection ends.
func TestAttackHandshakes(t *testing.T) {
	t.Parallel()
	x := newTarget(t)
	const good = "Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for _, door := range x.doors {
		for name, headers := range map[string]string{
			"no key":          strings.Replace(good, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "", 1),
			"two keys":        good + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
			"a short key":     strings.Replace(good, "dGhlIHNhbXBsZSBub25jZQ==", "AAAA", 1),
			"a key of 60 KiB": strings.Replace(good, "dGhlIHNhbXBsZSBub25jZQ==", strings.Repeat("A", 60<<10), 1),
			"no base64":       strings.Replace(good, "dGhlIHNhbXBsZSBub25jZQ==", "!!!!!!!!!!!!!!!!!!!!!!==", 1),
			"another version": strings.Replace(good, "13", "14", 1),
			"no version":      strings.Replace(good, "Sec-WebSocket-Version: 13\r\n", "", 1),
			"no connection":   strings.Replace(good, "Connection: Upgrade\r\n", "", 1),
			"a body":          good + "Content-Length: 4\r\n",
			"a chunked body":  good + "Transfer-Encoding: chunked\r\n",
			"early frames":    good,
		} {
			conn := dialTCP(t, door.address)
			must(t, conn.SetDeadline(time.Now().Add(patience)))
			request := door.request() + headers + "\r\n"
			if name == "early frames" {
				request += strings.Repeat(string(clientFrame(0x81, "{}")), 100)
			}
			_, err := io.WriteString(conn, request)
			must(t, err)
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil && answer.StatusCode == http.StatusSwitchingProtocols {
				t.Errorf("%s, %s: upgraded", door.name, name)
			}
			conn.Close()
		}
	}
	x.unharmed(t)
}
