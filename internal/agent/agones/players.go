//go:build !quick

package agones

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterhq/muster/internal/agent/agones/sdk"
)

func (p *Process) playerConnect(in *sdk.PlayerID) (proto.Message, error) {
	if in.PlayerID == "" || len(in.PlayerID) > valueMax {
		return invalid("playerID: %d bytes; want 1 to %d", len(in.PlayerID), valueMax)
	}
	out := new(sdk.Bool)
	err := p.change(func(m *Memory) error {
		players := &m.Players
		switch {
		case slices.Contains(players.Values, in.PlayerID):
			return nil
		case int64(len(players.Values)) >= min(players.Capacity, listMax):
			return status.Errorf(codes.OutOfRange, "playerID: %d players are connected, the capacity", len(players.Values))
		}
		if err := m.room(len(in.PlayerID)); err != nil {
			return err
		}
		players.Values = append(slices.Clone(players.Values), in.PlayerID)
		out.Bool = true
		return nil
	})
	return made(out, err)
}

func (p *Process) playerDisconnect(in *sdk.PlayerID) (proto.Message, error) {
	out := new(sdk.Bool)
	err := p.change(func(m *Memory) error {
		if at := slices.Index(m.Players.Values, in.PlayerID); at >= 0 {
			m.Players.Values = slices.Delete(slices.Clone(m.Players.Values), at, at+1)
			out.Bool = true
		}
		return nil
	})
	return made(out, err)
}

func (p *Process) setPlayerCapacity(in *sdk.Count) (proto.Message, error) {
	if in.Count < 0 {
		return invalid("count: %d; want 0 or more", in.Count)
	}
	return made(new(sdk.Empty), p.change(func(m *Memory) error { m.Players.Capacity = in.Count; return nil }))
}

func (p *Process) getPlayerCapacity(*sdk.Empty) (proto.Message, error) {
	m, _ := p.look()
	return &sdk.Count{Count: m.Players.Capacity}, nil
}

func (p *Process) getPlayerCount(*sdk.Empty) (proto.Message, error) {
	m, _ := p.look()
	return &sdk.Count{Count: int64(len(m.Players.Values))}, nil
}

func (p *Process) isPlayerConnected(in *sdk.PlayerID) (proto.Message, error) {
	m, _ := p.look()
	return &sdk.Bool{Bool: slices.Contains(m.Players.Values, in.PlayerID)}, nil
}

func (p *Process) getConnectedPlayers(*sdk.Empty) (proto.Message, error) {
	m, _ := p.look()
	return &sdk.PlayerIDList{List: m.Players.Values}, nil
}
