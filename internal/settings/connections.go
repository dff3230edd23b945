package settings

import (
	"errors"
	"net/netip"

	"github.com/musterhq/muster/internal/connlimit"
)

// Connections returns the configured limits of connections; 0 stands for the value derived from the descriptor limit.
func (s Settings) Connections() connlimit.Limits {
	l := connlimit.Limits{Total: s.LimitConnections, Unproven: s.LimitConnectionsUnproven, PerAddress: s.LimitConnectionsPerAddress}
	l.Doors[connlimit.HTTP] = s.LimitConnectionsHTTP
	l.Doors[connlimit.GameServers] = s.LimitConnectionsGameServers
	l.Doors[connlimit.PlayerStreams] = s.LimitConnectionsPlayerStreams
	l.Doors[connlimit.PartnerStreams] = s.LimitConnectionsPartnerStreams
	l.Doors[connlimit.EventStreams] = s.LimitConnectionsEventStreams
	return l
}

// SharedAddresses returns the addresses that many clients share: trusted proxies, and with dev this machine.
func (s Settings) SharedAddresses() []netip.Prefix {
	all := s.Proxies()
	if s.Dev {
		all = append(all, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	}
	return all
}

func (s Settings) checkConnections() error {
	return errors.Join(
		atLeast("limit-connections", s.LimitConnections, 0),
		atLeast("limit-connections-unproven", s.LimitConnectionsUnproven, 0),
		atLeast("limit-connections-per-address", s.LimitConnectionsPerAddress, 0),
		atLeast("limit-connections-http", s.LimitConnectionsHTTP, 0),
		atLeast("limit-connections-game-servers", s.LimitConnectionsGameServers, 0),
		atLeast("limit-connections-player-streams", s.LimitConnectionsPlayerStreams, 0),
		atLeast("limit-connections-partner-streams", s.LimitConnectionsPartnerStreams, 0),
		atLeast("limit-connections-event-streams", s.LimitConnectionsEventStreams, 0),
	)
}
