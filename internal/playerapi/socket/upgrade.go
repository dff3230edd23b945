package socket

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/frames"
	"github.com/musterhq/muster/internal/playerapi/problem"
)

// Check refuses requests other than an upgrade to a WebSocket with the subprotocol.
func Check(r *http.Request, subprotocol string) *problem.Problem {
	const version = "13" // RFC 6455; there is no later version
	h := r.Header
	switch {
	case r.Method != http.MethodGet || !strings.EqualFold(h.Get("Upgrade"), "websocket") || h.Get("Sec-WebSocket-Version") != version:
		p := problem.New(flow.InvalidArgument, "want GET with an upgrade to WebSocket, version %s, and the subprotocol %s", version, subprotocol)
		return p.WithStatus(http.StatusUpgradeRequired, http.Header{"Upgrade": {"websocket"}, "Sec-Websocket-Version": {version}})
	case !slices.Contains(frames.Offered(r.Header), subprotocol):
		return problem.New(flow.InvalidArgument, "Sec-WebSocket-Protocol: want %s among its names", subprotocol)
	}
	return nil
}

const (
	// MessageMax is the maximum size of a client's message, in bytes.
	MessageMax = 4 << 10
	// ClientPatience is the time limit of one write.
	ClientPatience = 10 * time.Second
	// Farewell is the time in which a client must answer a close frame.
	Farewell = 2 * time.Second
	// ComeBack is how long clients of a stopping service wait before they reconnect. They add jitter themselves.
	ComeBack = 2 * time.Second
)
