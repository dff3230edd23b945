package gameclient

import (
	"context"
	"iter"
)

// The parts of a Client, for a program that wants to replace them in its tests. A Client is each of them. Take the smallest that is enough.
type (
	// Creator makes game sessions.
	Creator interface {
		CreateSession(context.Context, CreateSessionRequest) (Session, error)
		AwaitActive(ctx context.Context, id string) (Session, error)
		CreateSessionOnQueue(context.Context, CreateSessionOnQueueRequest) (Placement, error)
		AwaitPlacement(ctx context.Context, id string) (Placement, error)
		StopPlacement(ctx context.Context, id string) error
	}

	// Finder looks for game sessions and for players.
	Finder interface {
		Session(ctx context.Context, id string) (Session, error)
		SearchSessions(context.Context, SearchSessionsRequest) (SearchPage, error)
		Sessions(context.Context, SearchSessionsRequest) iter.Seq2[Session, error]
		FindPlayer(ctx context.Context, playerID string) (Seat, error)
	}

	// Reserver takes seats for players who connect elsewhere.
	Reserver interface {
		Reserve(context.Context, JoinSessionRequest) (Seat, error)
		ReserveOrCreate(context.Context, JoinOrCreateRequest) (Seat, error)
		Release(ctx context.Context, playerSessionID string) (givenBack bool, err error)
	}

	// Matchmaker finds matches.
	Matchmaker interface {
		StartMatchmaking(context.Context, StartMatchmakingRequest) (Ticket, error)
		Ticket(ctx context.Context, id string) (Ticket, error)
		AcceptMatch(context.Context, AcceptMatchRequest) error
		StopMatchmaking(ctx context.Context, ticketID string) error
	}

	// Backend is all that a program calls that connects nobody itself.
	Backend interface {
		Creator
		Finder
		Reserver
		Matchmaker
	}

	// Joiner is a player's way into game sessions and out of them.
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
