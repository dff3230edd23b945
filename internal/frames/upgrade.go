package frames

import (
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// handshakeWait bounds the write of the answer to an upgrade request, which fits into the send buffer of any new connection.
const handshakeWait = 5 * time.Second

// acceptKey is the text that a server appends to a client's key. RFC 6455, 1.3.
const acceptKey = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// CheckUpgrade returns what is wrong with a WebSocket request; nil if Upgrade would accept it. An empty subprotocol means that
// none is negotiated. RFC 6455, 4.2.1.
func CheckUpgrade(r *http.Request, subprotocol string) error {
	h := r.Header
	key := h.Values("Sec-Websocket-Key")
	switch {
	case r.Method != http.MethodGet || !r.ProtoAtLeast(1, 1):
		return fmt.Errorf("%.20s %.20s, want GET and HTTP/1.1", r.Method, r.Proto)
	case r.ContentLength != 0:
		return errors.New("the request has a body, want none")
	case !listed(h, "Connection", "upgrade"):
		return errors.New("header Connection: want Upgrade")
	case !listed(h, "Upgrade", "websocket"):
		return errors.New("header Upgrade: want websocket")
	case h.Get("Sec-Websocket-Version") != "13":
		return fmt.Errorf("header Sec-WebSocket-Version: %.20q, want 13", h.Get("Sec-Websocket-Version"))
	case len(key) != 1 || !isKey(key[0]):
		return errors.New("header Sec-WebSocket-Key: want 16 bytes in base64")
	case subprotocol != "" && !slices.Contains(Offered(h), subprotocol):
		return fmt.Errorf("header Sec-WebSocket-Protocol: want %s among its names", subprotocol)
	}
	return nil
}

// isKey reports whether a text is the base64 encoding of 16 bytes.
func isKey(text string) bool {
	const encoded = 24
	var key [18]byte
	n, err := base64.StdEncoding.Decode(key[:], []byte(text[:min(len(text), encoded)]))
	return err == nil && n == 16 && len(text) == encoded
}

// listed reports whether a list header contains a name, ignoring case.
func listed(h http.Header, header, want string) bool {
	return slices.ContainsFunc(names(h, header), func(name string) bool { return strings.EqualFold(name, want) })
}

func names(h http.Header, header string) (all []string) {
	for _, line := range h.Values(header) {
		for name := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(name))
		}
	}
	return all
}

// Offered returns the subprotocols that a client offers.
func Offered(h http.Header) []string { return names(h, "Sec-Websocket-Protocol") }

// Upgrade answers a WebSocket request and takes over its connection. It negotiates no extension, so frames are not compressed.
// It answers an invalid request with status 400, or 426 for an unsupported version, and returns an error.
func Upgrade(w http.ResponseWriter, r *http.Request, subprotocol string) (net.Conn, error) {
	if err := CheckUpgrade(r, subprotocol); err != nil {
		RefuseUpgrade(w, r, err)
		return nil, err
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "this connection cannot become a WebSocket", http.StatusInternalServerError)
		return nil, err
	}
	if n := buffered.Reader.Buffered(); n > 0 {
		_ = conn.Close() // it is useless now
		return nil, fmt.Errorf("%d bytes came before the handshake was over", n)
	}
	hash := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + acceptKey))
	answer := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(hash[:]) + "\r\n"
	if subprotocol != "" {
		answer += "Sec-WebSocket-Protocol: " + subprotocol + "\r\n"
	}
	err = conn.SetDeadline(time.Now().Add(handshakeWait))
	if err == nil {
		_, err = conn.Write([]byte(answer + "\r\n"))
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// RefuseUpgrade answers a request that CheckUpgrade has refused.
func RefuseUpgrade(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusBadRequest
	if r.Header.Get("Sec-Websocket-Version") != "13" {
		status = http.StatusUpgradeRequired
		w.Header()["Upgrade"], w.Header()["Sec-Websocket-Version"] = []string{"websocket"}, []string{"13"}
	}
	w.Header().Set("Connection", "close") // otherwise net/http would first wait for an announced body
	http.Error(w, err.Error(), status)
}
