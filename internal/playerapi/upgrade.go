package playerapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/frames"
)

// upgradeWanted refuses what is no wish for a WebSocket as it is spoken here.
func upgradeWanted(r *http.Request, subprotocol string) *Problem {
	const version = "13" // RFC 6455; there never was a later one
	h := r.Header
	switch {
	case r.Method != http.MethodGet || !strings.EqualFold(h.Get("Upgrade"), "websocket") || h.Get("Sec-WebSocket-Version") != version:
		p := refusal(flow.InvalidArgument, "want GET with an upgrade to WebSocket, version %s, and the subprotocol %s", version, subprotocol)
		return p.withStatus(http.StatusUpgradeRequired, http.Header{"Upgrade": {"websocket"}, "Sec-Websocket-Version": {version}})
	case !slices.Contains(frames.Offered(r.Header), subprotocol):
		return refusal(flow.InvalidArgument, "Sec-WebSocket-Protocol: want %s among its names", subprotocol)
	}
	return nil
}
