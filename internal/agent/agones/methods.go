//go:build !quick

package agones

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterhq/muster/internal/agent/agones/sdk"
	"github.com/musterhq/muster/internal/steady"
)

// The services of the SDK.
const (
	stable = "agones.dev.sdk.SDK"
	beta   = "agones.dev.sdk.beta.SDK"
	alpha  = "agones.dev.sdk.alpha.SDK"
)

// method is a call with one message in each direction, which Health and WatchGameServer are not.
type method struct {
	service, name string
	verb, path    string // in REST; {name} is in the request
	turns         bool   // it changes the state
	request       func() proto.Message
	do            func(*Process, proto.Message) (proto.Message, error)
	// inREST returns the part of a request that is in the body, and where {name} is stored.
	inREST func(proto.Message) (body proto.Message, name *string)
}

// unary returns a method. named is nil for a method without {name}.
func unary[T any, In interface {
	*T
	proto.Message
}](service, name, verb, path string, do func(*Process, In) (proto.Message, error), named func(In) (proto.Message, *string)) method {
	return method{
		service: service, name: name, verb: verb, path: path, turns: slices.Contains([]string{"/ready", "/allocate", "/reserve", "/shutdown"}, path),
		request: func() proto.Message { return In(new(T)) },
		do:      func(p *Process, in proto.Message) (proto.Message, error) { return do(p, in.(In)) },
		inREST: func(in proto.Message) (proto.Message, *string) {
			if named == nil {
				return in, nil
			}
			return named(in.(In))
		},
	}
}

var methods = []method{
	unary(stable, "Ready", "POST", "/ready", (*Process).ready, nil),
	unary(stable, "Allocate", "POST", "/allocate", (*Process).allocate, nil),
	unary(stable, "Reserve", "POST", "/reserve", (*Process).reserve, nil),
	unary(stable, "Shutdown", "POST", "/shutdown", (*Process).shutdown, nil),
	unary(stable, "GetGameServer", "GET", "/gameserver", (*Process).getGameServer, nil),
	unary(stable, "SetLabel", "PUT", "/metadata/label", (*Process).setLabel, nil),
	unary(stable, "SetAnnotation", "PUT", "/metadata/annotation", (*Process).setAnnotation, nil),

	unary(beta, "GetCounter", "GET", "/v1beta1/counters/{name}", (*Process).getCounter,
		func(in *sdk.GetCounterRequest) (proto.Message, *string) { return in, &in.Name }),
	unary(beta, "UpdateCounter", "PATCH", "/v1beta1/counters/{name}", (*Process).updateCounter, func(in *sdk.UpdateCounterRequest) (proto.Message, *string) {
		in.CounterUpdateRequest = new(sdk.CounterUpdateRequest)
		return in.CounterUpdateRequest, &in.CounterUpdateRequest.Name
	}),
	unary(beta, "GetList", "GET", "/v1beta1/lists/{name}", (*Process).getList,
		func(in *sdk.GetListRequest) (proto.Message, *string) { return in, &in.Name }),
	unary(beta, "UpdateList", "PATCH", "/v1beta1/lists/{name}", (*Process).updateList, func(in *sdk.UpdateListRequest) (proto.Message, *string) {
		in.List = new(sdk.List)
		return in.List, &in.List.Name
	}),
	unary(beta, "AddListValue", "POST", "/v1beta1/lists/{name}:addValue", (*Process).addListValue,
		func(in *sdk.AddListValueRequest) (proto.Message, *string) { return in, &in.Name }),
	unary(beta, "RemoveListValue", "POST", "/v1beta1/lists/{name}:removeValue", (*Process).removeListValue,
		func(in *sdk.RemoveListValueRequest) (proto.Message, *string) { return in, &in.Name }),

	unary(alpha, "PlayerConnect", "POST", "/alpha/player/connect", (*Process).playerConnect, nil),
	unary(alpha, "PlayerDisconnect", "POST", "/alpha/player/disconnect", (*Process).playerDisconnect, nil),
	unary(alpha, "SetPlayerCapacity", "PUT", "/alpha/player/capacity", (*Process).setPlayerCapacity, nil),
	unary(alpha, "GetPlayerCapacity", "GET", "/alpha/player/capacity", (*Process).getPlayerCapacity, nil),
	unary(alpha, "GetPlayerCount", "GET", "/alpha/player/count", (*Process).getPlayerCount, nil),
	unary(alpha, "IsPlayerConnected", "GET", "/alpha/player/connected/{name}", (*Process).isPlayerConnected,
		func(in *sdk.PlayerID) (proto.Message, *string) { return in, &in.PlayerID }),
	unary(alpha, "GetConnectedPlayers", "GET", "/alpha/player/connected", (*Process).getConnectedPlayers, nil),
}

// call runs a method. A panic fails only this call.
func (p *Process) call(m *method, in proto.Message) (out proto.Message, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			p.log.Error("call of an Agones SDK panicked", "method", m.name, "panic", reason)
			err = status.Error(codes.Internal, "internal error")
		}
	}()
	switch now := steady.Now(); {
	case !p.calls.Take(callRate, now):
		return nil, status.Errorf(codes.ResourceExhausted, "more than %d calls at once or 100 a second; want fewer", callRate.Burst)
	case m.turns && !p.turns.Take(turnRate, now):
		return nil, status.Errorf(codes.ResourceExhausted, "more than %d changes of the state at once or 2 a second; want fewer", turnRate.Burst)
	}
	p.used()
	return m.do(p, in)
}

// sign handles a health ping. It delays a game that sends too many.
func (p *Process) sign(ctx context.Context) error {
	p.used()
	p.mu.Lock()
	p.pinged = time.Now()
	if p.begun.IsZero() {
		p.begun = p.pinged
	}
	p.mu.Unlock()
	for !p.calls.Take(callRate, steady.Now()) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(callRate.Every):
		}
	}
	return nil
}

// used records that the game has called the SDK: its health is judged from its first call on. For an adopted game it is judged from the first health
// ping, because SDKs send pings in a stream that ended with the earlier agent, and some never open another one.
func (p *Process) used() {
	p.mu.Lock()
	if p.begun.IsZero() && !p.adopted {
		p.begun = time.Now()
	}
	first := !p.memory.Used
	p.mu.Unlock()
	if first {
		p.change(func(m *Memory) error { m.Used = true; return nil })
	}
}

// watch calls send with the state, now and after each change, until it fails or ctx ends.
func (p *Process) watch(ctx context.Context, send func(*sdk.GameServer) error) error {
	select {
	case p.watches <- struct{}{}:
		defer func() { <-p.watches }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d watches: want at most that many at a time", watchesMax)
	}
	p.used()
	for {
		m, changed := p.look()
		if err := send(m.gameServer(&p.config)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}
