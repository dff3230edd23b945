package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/identity"
)

// besieger connects from the worker's own address. On Linux, a machine can connect to itself from every address in 127/8.
func (x *attacker) besieger(ctx context.Context, worker int) (net.Conn, error) {
	var d net.Dialer
	if runtime.GOOS == "linux" {
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 1+byte(worker/200%200), 1+byte(worker%200))}
	}
	return d.DialContext(ctx, "tcp", x.order.Address)
}

// holdConnection connects without a credential, sends at most half a request, and stays until the service ends it.
func (x *attacker) holdConnection(ctx context.Context, worker int) error {
	c, err := x.besieger(ctx, worker)
	if err != nil {
		time.Sleep(10 * time.Millisecond) // this process is out of ports or descriptors
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer c.Close()
	if err := c.(*net.TCPConn).SetLinger(0); err != nil { // no ports in TIME_WAIT
		return err
	}
	say := [...]string{"", "POST / HTTP/1.1\r\nHost: x\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"}[worker%4]
	if _, err := io.WriteString(c, say); err != nil {
		return err
	}
	var rest [512]byte
	for {
		if _, err := c.Read(rest[:]); err != nil {
			return nil
		}
	}
}

// malformedFrames are frames that no client may send.
var malformedFrames = [][]byte{
	append([]byte{0x81, 0xFF}, binary.BigEndian.AppendUint64(nil, 1<<63)...),                     // a length of 2^63
	append([]byte{0x81, 0xFF}, binary.BigEndian.AppendUint64(nil, 1<<62)...),                     // 2^62, without a mask
	append(append([]byte{0x81, 0xFF}, binary.BigEndian.AppendUint64(nil, 1<<30)...), 1, 2, 3, 4), // more than any message
	{0x81, 0x05, 'h', 'e', 'l', 'l', 'o'},                                                        // no mask
	{0xF1, 0x80, 0, 0, 0, 0},                                                                     // reserved bits
	{0x83, 0x80, 0, 0, 0, 0},                                                                     // an opcode that does not exist
	{0x09, 0x80, 0, 0, 0, 0},                                                                     // a ping in fragments
	append([]byte{0x89, 0xFE, 0, 200, 0, 0, 0, 0}, make([]byte, 200)...),                         // a ping that is too long
	{0x80, 0x80, 0, 0, 0, 0},                                                                     // a fragment of nothing
	{0x88, 0x81, 0, 0, 0, 0, 3},                                                                  // half a close code
	{0x81, 0x82, 0, 0, 0, 0, 0xC3, 0x28},                                                         // text that is not UTF-8
}

// webSocketDoors return request headers that open a WebSocket, as far as a client without a key of the studio gets: a
// game server has a token, and a player's stream opens for every client, to send the reason of a refusal.
var webSocketDoors = []func(x *attacker, worker int) string{
	func(x *attacker, worker int) string {
		return fmt.Sprintf("GET /?pID=attack-%d&sdkVersion=5.5.0&sdkLanguage=Go&FleetId=%s&ComputeId=%s&Authorization=%s HTTP/1.1\r\n", worker, x.order.Fleet, compute, x.order.Token)
	},
	func(*attacker, int) string {
		return "GET /playerflow/v1/player/stream HTTP/1.1\r\nAuthorization: Bearer wrong\r\nSec-WebSocket-Protocol: playerflow.v1\r\n"
	},
	func(*attacker, int) string {
		return "GET /playerflow/v1/partner/events?subscription_id=x HTTP/1.1\r\nSec-WebSocket-Protocol: playerflow.events.v1\r\n"
	},
}

// sendMalformedFrame opens a WebSocket, sends one frame and waits until the service ends the connection. Each kind of frame
// is used at all doors for its part of the siege.
func (x *attacker) sendMalformedFrame(ctx context.Context, worker int) error {
	n := int(x.turn.Add(1))
	frame := malformedFrames[x.elapsed(len(malformedFrames))]
	c, err := x.besieger(ctx, worker)
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	head := webSocketDoors[n%len(webSocketDoors)](x, worker)
	if _, err := io.WriteString(c, head+"Host: "+x.order.Address+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"); err != nil {
		return err
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		return err
	}
	if _, err := c.Write(frame); err != nil {
		return err
	}
	_ = c.(*net.TCPConn).CloseWrite() // so that an incomplete frame also ends
	_, err = io.Copy(io.Discard, c)
	return err
}

// worstBody is close to the maximum size that the service reads.
const worstBody = 79 << 20 / 10

// worst is a body for StartMatchmaking.
type worst struct {
	protocol *protocol
	body     []byte
}

// worstBodies are large, deep or costly to decode, in each codec.
var worstBodies = sync.OnceValue(func() []worst {
	return []worst{
		{rpcCBOR, cborPlayers(0xA0)},                                                  // millions of empty maps
		{rpcCBOR, cborPlayers(0x60)},                                                  // millions of empty texts
		{rpcCBOR, append(cborPlayersKey(), cborBignum(worstBody)...)},                 // one number
		{rpcCBOR, append(cborPlayersKey(), bytes.Repeat([]byte{0x81}, worstBody)...)}, // depth
		{rpcCBOR, append(cborPlayersKey(), bytes.Repeat([]byte{0x9F}, worstBody)...)}, // indefinite lengths
		{rpcCBOR, append(cborPlayersKey(), bytes.Repeat([]byte{0xC6}, worstBody)...)}, // tags
		{awsJSON, jsonPlayers("{}")},
		{awsJSON, jsonPlayers(`{"PlayerId":"a","PlayerAttributes":{"a":{"SL":["b"]}}}`)},
		{awsJSON, append([]byte(`{"Players":`), bytes.Repeat([]byte{'['}, worstBody)...)},
		{awsJSON, append([]byte(`{"Players":`), bytes.Repeat([]byte{'9'}, worstBody)...)},
	}
})

// cborPlayersKey is a map with one key, whose value follows.
func cborPlayersKey() []byte {
	const name = "Players"
	return append(appendCBORHead([]byte{0xA1}, 3, len(name)), name...)
}

func cborPlayers(element byte) []byte {
	const n = worstBody - 64
	b := append(cborPlayersKey(), 0x9A)
	return append(binary.BigEndian.AppendUint32(b, n), bytes.Repeat([]byte{element}, n)...)
}

func cborBignum(n uint32) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0xC2, 0x5A}, n), bytes.Repeat([]byte{0xFF}, int(n))...)
}

func jsonPlayers(player string) []byte {
	n := (worstBody - 64) / (len(player) + 1)
	b := append([]byte(`{"ConfigurationName":"x","Players":[`), bytes.Repeat([]byte(player+","), n)...)
	return append(b[:len(b)-1], "]}"...)
}

// sendWorstBody makes one call with a client key, which any player can extract.
func (x *attacker) sendWorstBody(ctx context.Context, worker int) error {
	bodies := worstBodies()
	worst := &bodies[int(x.turn.Add(1))%len(bodies)]
	c, err := dial(ctx, x.order.Address, worst.protocol, x.order.Key)
	if err != nil {
		return err
	}
	defer c.close()
	defer context.AfterFunc(ctx, c.close)()
	_, err = c.send("StartMatchmaking", worst.body)
	return err
}

// signInWrongly makes one call with a well-formed but invalid credential.
func (x *attacker) signInWrongly(ctx context.Context, worker int) error {
	c := x.conns[worker]
	if c == nil {
		wrong := identity.AccessKey{ID: x.order.Key.ID, Secret: "not the secret"}
		if worker%2 == 0 {
			wrong.ID = fmt.Sprintf("MUST%016d", worker)
		}
		var err error
		if c, err = dial(ctx, x.order.Address, awsJSON, wrong); err != nil {
			return err
		}
		x.conns[worker] = c
	}
	if err := c.tcp.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	_, err := c.call("ListLocations")
	if _, answered := err.(*apiError); !answered { // the service ends connections without a credential
		c.close()
		x.conns[worker] = nil
	}
	return err
}
