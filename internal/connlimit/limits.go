package connlimit

import (
	"cmp"
	"errors"
	"fmt"
)

// Door is what a connection is used for. Every connection begins as HTTP.
type Door int

// The doors. Streams leave HTTP when they are accepted.
const (
	HTTP           Door = iota // API requests, session nodes, player flow calls, pages, and everything unproven
	GameServers                // WebSocket links of game servers
	HostAgents                 // WebSocket links of host agents
	PlayerStreams              // WebSocket event streams of players
	PartnerStreams             // WebSocket streams of the studio's servers
	EventStreams               // server-sent events of session nodes, and output that operators read
	doors
)

var doorNames = [doors]string{"http", "game_servers", "host_agents", "player_streams", "partner_streams", "event_streams"}

func (d Door) String() string { return doorNames[d] }

// Limits are numbers of connections, over all ports of the process. In a request to Derive, 0 stands for the derived
// value.
type Limits struct {
	Total      int
	Unproven   int // no credential presented yet
	PerAddress int // from one IPv4 address or one IPv6 /64
	PerNetwork int // from one IPv6 /56
	Doors      [doors]int
}

// Reserve is the number of descriptors that connections cannot use, with the share of the stores.
type Reserve struct {
	Descriptors  int
	JournalFiles int // table files that the journal keeps open at most
	ArchiveFiles int // the same of the archive
}

// The reserve is a quarter of all descriptors within these bounds. The lower one is what two databases need that keep as few
// files open as they can; the upper one is more than they use.
const (
	reserveMin = 256
	reserveMax = 1024

	// reserveOther is the part that is not for table files: logs, manifests, locks, snapshots, keys, certificates, listening
	// sockets, and outgoing connections to webhooks and identity providers.
	reserveOther = 64

	journalFilesMax = 256
	archiveFilesMax = 500

	// totalMin is the least with which the service starts.
	totalMin = 64
	// totalMax bounds the derived total: a system that allows a million descriptors need not have the memory for as many
	// connections, which cost about 20 KiB each. A larger total has to be asked for.
	totalMax = 100_000
)

// ReserveOf is the reserve under a descriptor limit.
func ReserveOf(descriptors int) Reserve {
	r := Reserve{Descriptors: min(max(descriptors/4, reserveMin), reserveMax)}
	files := r.Descriptors - reserveOther
	r.JournalFiles = min(files/3, journalFilesMax)
	r.ArchiveFiles = min(files*2/3, archiveFilesMax)
	return r
}

// Derive fills in the zero fields of wanted from the descriptor limit of the process. It fails when the wanted limits do not
// leave the reserve, or the descriptor limit is too low for any service.
func Derive(descriptors int, wanted Limits) (Limits, error) {
	room := descriptors - ReserveOf(descriptors).Descriptors
	if room < totalMin {
		return Limits{}, fmt.Errorf("the process may open %d descriptors: want at least %d (ulimit -n, or LimitNOFILE of systemd)", descriptors, reserveMin+totalMin)
	}
	l := wanted
	l.Total = cmp.Or(l.Total, min(room, totalMax))
	if l.Total > room {
		return Limits{}, fmt.Errorf("limit-connections %d: the process may open %d descriptors, of which %d are for its files: want at most %d, or a higher descriptor limit",
			l.Total, descriptors, descriptors-room, room)
	}
	l.Unproven = min(cmp.Or(l.Unproven, share(l.Total, 6)), l.Total)
	l.PerAddress = cmp.Or(l.PerAddress, share(l.Total, 2))
	l.PerNetwork = cmp.Or(l.PerNetwork, 2*l.PerAddress)
	for door, eighths := range [doors]int{HTTP: 6, GameServers: 7, HostAgents: 2, PlayerStreams: 7, PartnerStreams: 1, EventStreams: 2} {
		l.Doors[door] = min(cmp.Or(l.Doors[door], share(l.Total, eighths)), l.Total)
	}
	return l, nil
}

// share is so many eighths of all, and at least one.
func share(all, eighths int) int { return max(all*eighths/8, 1) }

// shareFrom is the limit of a door from which on one holder may not have all of it. Smaller limits are set by operators who mean them.
const shareFrom = 16

// ofHolder is how many connections of a door one holder may have.
func (l *Limits) ofHolder(door Door) int {
	if most := l.Doors[door]; most >= shareFrom {
		return most / 2
	}
	return l.Doors[door]
}

// ErrShare is the reason to refuse a stream whose holder has its share of the door.
var ErrShare = errors.New("this access key has half of all connections of this kind, which is the most that one may have")

// ErrFull is the reason to refuse a stream whose door has no place left. Its client may come back later.
var ErrFull = errors.New("too many connections of this kind are open")
