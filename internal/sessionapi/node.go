package sessionapi

import (
	"context"
	"reflect"

	"github.com/musterhq/muster/internal/identity"
)

// node is one node of the script interface: docs/spec/session-interface.md#nodes.
type node struct {
	name   string
	event  string // the event that completes its asynchronous form; "" if it has none
	access identity.Roles
	waits  bool // its answer may wait for something

	in, out reflect.Type

	read func(body []byte) (in any, problem *Problem)
	run  func(d *Door, ctx context.Context, r *request, in any) (out any, err error)

	// begin, if set, replaces run in an asynchronous call: it may report progress before it ends.
	begin func(d *Door, ctx context.Context, r *request, in any) (out any, err error)
}

// input is the body of a node.
type input interface{ check(*checks) }

// serve makes a node from a function.
func serve[I any, P interface {
	*I
	input
}, O any](name, event string, a identity.Roles, run func(*Door, context.Context, *request, *I) (*O, error)) *node {
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

// nodes are the nodes of the script interface, with the names from there.
var nodes = []*node{
	serve("ConfigureGameLiftClient", "", identity.MayPlayOrLook, (*Door).configureClient),
	serve("CreatePlayerId", "", identity.MayPlayOrLook, (*Door).createPlayerID),
	serve("GetResourceNameId", "", identity.MayPlayOrLook, (*Door).resourceNameID),
	serve("CreateSession", "OnCreateSessionAsyncComplete", identity.MayPlay, (*Door).createSession),
	createOnQueueNode(),
	serve("SearchSessions", "OnSearchSessionsAsyncComplete", identity.MayPlayOrLook, (*Door).searchSessions),
	joinNode(),
	serve("LeaveSession", "OnLeaveSessionAsyncComplete", identity.MayPlay, (*Door).leaveSession),
	serve("StartMatchmaking", "OnStartMatchmakingAsyncComplete", identity.MayPlay, (*Door).startMatchmaking),
	serve("StopMatchmaking", "OnStopMatchmakingAsyncComplete", identity.MayPlay, (*Door).stopMatchmaking),
	serve("AcceptMatch", "OnAcceptMatchAsyncComplete", identity.MayPlay, (*Door).acceptMatch),
	serve("StartPolling", "", identity.MayPlayOrLook, (*Door).startPolling),
	serve("StopPolling", "", identity.MayPlayOrLook, (*Door).stopPolling),
}

// Further calls, with which a script follows what a node has started.
var (
	placementNode = serve("placements", "", identity.MayPlayOrLook, (*Door).describePlacement)
	ticketNode    = serve("tickets", "", identity.MayPlayOrLook, (*Door).describeTicket)
	connectedNode = serve("connected", "", identity.MayPlay, (*Door).connected)
)

// nothing is the body of requests without arguments.
type nothing struct{}

func (*nothing) check(*checks) {}

const joinName = "JoinSession"

// joinNode is JoinSession. A synchronous call only reserves a seat; an asynchronous one completes when the player has joined.
func joinNode() *node {
	n := serve(joinName, "OnJoinSessionAsyncComplete", identity.MayPlay, (*Door).joinSession)
	n.begin = func(d *Door, ctx context.Context, r *request, in any) (any, error) {
		return d.joinAndWait(ctx, r, in.(*joinSessionRequest))
	}
	return n
}
