package sessionapi

import (
	"context"
	"reflect"
)

// node is one node of the script interface: docs/spec/session-interface.md#nodes.
type node struct {
	name   string
	event  string // what completes its asynchronous form; "" when it has none
	access access
	waits  bool // its answer may wait for something

	in, out reflect.Type

	read func(body []byte) (in any, problem *Problem)
	run  func(d *Door, ctx context.Context, r *request, in any) (out any, err error)

	// begin, when set, is what an asynchronous call does in place of run: it may tell of progress before it ends.
	begin func(d *Door, ctx context.Context, r *request, in any) (out any, err error)
}

// input is the body of a node.
type input interface{ check(*checks) }

// serve makes a node of a function.
func serve[I any, P interface {
	*I
	input
}, O any](name, event string, a access, run func(*Door, context.Context, *request, *I) (*O, error)) *node {
	return &node{
		name: name, event: event, access: a, in: reflect.TypeFor[I](), out: reflect.TypeFor[O](),
		read: func(body []byte) (any, *Problem) {
			in := new(I)
			if problem := decode(body, in); problem != nil {
				return nil, problem
			}
			var c checks
			P(in).check(&c)
			return in, c.first
		},
		run: func(d *Door, ctx context.Context, r *request, in any) (any, error) {
			out, err := run(d, ctx, r, in.(*I))
			if err != nil {
				return nil, err
			}
			return out, nil
		},
	}
}

// waiting marks a node whose answer may wait.
func waiting(n *node) *node {
	n.waits = true
	return n
}

// nodes are those of the script interface, named as there.
var nodes = []*node{
	serve("ConfigureGameLiftClient", "", playLook, (*Door).configureClient),
	serve("CreatePlayerId", "", playLook, (*Door).createPlayerID),
	serve("GetResourceNameId", "", playLook, (*Door).resourceNameID),
	serve("CreateSession", "OnCreateSessionAsyncComplete", play, (*Door).createSession),
	createOnQueueNode(),
	serve("SearchSessions", "OnSearchSessionsAsyncComplete", playLook, (*Door).searchSessions),
	joinNode(),
	serve("LeaveSession", "OnLeaveSessionAsyncComplete", play, (*Door).leaveSession),
	serve("StartMatchmaking", "OnStartMatchmakingAsyncComplete", play, (*Door).startMatchmaking),
	serve("StopMatchmaking", "OnStopMatchmakingAsyncComplete", play, (*Door).stopMatchmaking),
	serve("AcceptMatch", "OnAcceptMatchAsyncComplete", play, (*Door).acceptMatch),
	serve("StartPolling", "", playLook, (*Door).startPolling),
	serve("StopPolling", "", playLook, (*Door).stopPolling),
}

// Beside the nodes: what a script asks about what a node began.
var (
	placementNode = serve("placements", "", playLook, (*Door).describePlacement)
	ticketNode    = serve("tickets", "", playLook, (*Door).describeTicket)
	connectedNode = serve("connected", "", play, (*Door).connected)
)

// nothing is the body of requests that have none.
type nothing struct{}

func (*nothing) check(*checks) {}

// joinNode is JoinSession: answered at once it reserves a seat; asynchronously it completes when the player is in.
func joinNode() *node {
	n := serve("JoinSession", "OnJoinSessionAsyncComplete", play, (*Door).joinSession)
	n.begin = func(d *Door, ctx context.Context, r *request, in any) (any, error) {
		return d.joinAndWait(ctx, r, in.(*joinSessionRequest))
	}
	return n
}
