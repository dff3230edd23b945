package gameclient

import (
	"context"
	"iter"
)

// Interfaces of a Client, for programs that replace it in their tests. The methods are documented at Client. Use the smallest interface that
// suffices.
type (
	// Creator creates game sessions.
	Creator interface {
		CreateSession(context.Context, CreateSessionRequest) (Session, error)
		AwaitActive(ctx context.Context, id string) (Session, error)
		CreateSessionOnQueue(context.Context, CreateSessionOnQueueRequest) (Placement, error)
		AwaitPlacement(ctx context.Context, id string) (Placement, error)
		StopPlacement(ctx context.Context, id string) error
	}

	// Finder finds game sessions and players.
	Finder interface {
		Session(ctx context.Context, id string) (Session, error)
		SearchSessions(context.Context, SearchSessionsRequest) (SearchPage, error)
		Sessions(context.Context, SearchSessionsRequest) iter.Seq2[Session, error]
		FindPlayer(ctx context.Context, playerID string) (Seat, error)
	}

	// Reserver reserves seats for players who connect from another program.
	Reserver interface {
		Reserve(context.Context, JoinSessionRequest) (Seat, error)
		ReserveOrCreate(context.Context, JoinOrCreateRequest) (Seat, error)
		Release(ctx context.Context, playerSessionID string) (givenBack bool, err error)
	}

	// Matchmaker requests matches.
	Matchmaker interface {
		StartMatchmaking(context.Context, StartMatchmakingRequest) (Ticket, error)
		Ticket(ctx context.Context, id string) (Ticket, error)
		AcceptMatch(context.Context, AcceptMatchRequest) error
		StopMatchmaking(ctx context.Context, ticketID string) error
	}

	// Backend has all calls that need no Connector.
	Backend interface {
		Creator
		Finder
		Reserver
		Matchmaker
	}

	// Joiner joins and leaves game sessions, with the Client's Connector.
	Joiner interface {
		JoinSession(context.Context, JoinSessionRequest) (Seat, error)
		JoinOrCreate(context.Context, JoinOrCreateRequest) (Seat, error)
		JoinFriend(context.Context, JoinFriendRequest) (Seat, error)
		Connect(context.Context, Seat) error
		Joined() (Seat, bool)
		LeaveSession(context.Context) error
	}
)

var (
	_ Backend = (*Client)(nil)
	_ Joiner  = (*Client)(nil)
)
