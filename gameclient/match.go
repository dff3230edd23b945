package gameclient

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

// StartMatchmakingRequest requests a match for one player, or for a party that stays together.
type StartMatchmakingRequest struct {
	TicketID      string        // unique; up to 128 letters, digits, hyphens and periods; if empty, the service chooses one
	Configuration string        // name or ARN of the matchmaking configuration
	Players       []MatchPlayer // at least one; a match contains all of them
}

// MatchPlayer is a player of a ticket.
type MatchPlayer struct {
	ID   string // 1 to 1,024 characters
	Team string // for backfill only, because the matchmaker chooses the team otherwise

	// Attributes are the values that the rules evaluate. A value is a string of up to 100 characters, a number (int or float64),
	// a []string or a map[string]float64; or a json.RawMessage with exactly one of {"S":"x"}, {"N":23}, {"SL":["a"]}, {"SDM":{"k":1.5}}.
	Attributes map[string]any

	LatencyMilliseconds map[string]int // round-trip times by location; from 1
}

// TicketStatus is the status of a matchmaking ticket.
type TicketStatus string

// The statuses of a ticket. The last four are final.
const (
	TicketQueued             TicketStatus = "QUEUED"              // the matcher has not considered it yet
	TicketSearching          TicketStatus = "SEARCHING"           // the matcher looks for a match
	TicketRequiresAcceptance TicketStatus = "REQUIRES_ACCEPTANCE" // a match was found: AcceptMatch
	TicketPlacing            TicketStatus = "PLACING"             // the match waits for a game session
	TicketCompleted          TicketStatus = "COMPLETED"           // the game session is ACTIVE: Seats
	TicketFailed             TicketStatus = "FAILED"              // the match got no game session
	TicketCancelled          TicketStatus = "CANCELLED"           // by StopMatchmaking, a newer ticket of a player, or a missing acceptance
	TicketTimedOut           TicketStatus = "TIMED_OUT"           // no match within the configuration's time
)

// Final reports whether the ticket has ended.
func (s TicketStatus) Final() bool {
	return s == TicketCompleted || s == TicketFailed || s == TicketCancelled || s == TicketTimedOut
}

// Ticket is a request for a match, and its result.
type Ticket struct {
	ID            string            // as in the request, or chosen by the service
	Configuration string            // name of the matchmaking configuration
	Status        TicketStatus      // a service may know more of them
	StatusReason  string            // for programs
	StatusMessage string            // for people
	Started       time.Time         // when the service got the request
	Ended         time.Time         // zero while the ticket is open
	EstimatedWait time.Duration     // in whole seconds; zero if unknown
	Teams         map[string]string // names of teams by player id, once a match is found
	SessionID     string            // ARN of the game session of a completed ticket
	Seats         []Seat            // of a completed ticket: one for each of its players
}

// Seat returns the seat of one player of a completed ticket, and whether there is one.
func (t Ticket) Seat(playerID string) (Seat, bool) {
	for _, s := range t.Seats {
		if s.PlayerID == playerID {
			return s, true
		}
	}
	return Seat{}, false
}

// StartMatchmaking requests a match. Ticket or a Tracker reports the result. The error is an *InvalidRequestError, or an *Error:
// ErrNotFound if the configuration does not exist, and ErrRefused if an attribute does not fit the rule set. A new ticket cancels
// earlier tickets of its players.
func (c *Client) StartMatchmaking(ctx context.Context, r StartMatchmakingRequest) (Ticket, error) {
	check := check{call: "StartMatchmaking"}
	check.need("Configuration", r.Configuration)
	check.that(len(r.Players) > 0, "Players", "", "at least one player")
	in := &gamelift.StartMatchmakingInput{TicketId: text(r.TicketID), ConfigurationName: &r.Configuration}
	for i, p := range r.Players {
		field := fmt.Sprintf("Players[%d]", i)
		check.need(field+".ID", p.ID)
		player := types.Player{PlayerId: aws.String(p.ID), Team: text(p.Team)}
		for _, name := range slices.Sorted(maps.Keys(p.Attributes)) {
			value, err := attributeOf(p.Attributes[name])
			check.that(err == nil, fmt.Sprintf("%s.Attributes[%s]", field, name), fmt.Sprint(p.Attributes[name]), fmt.Sprint(err))
			if player.PlayerAttributes == nil {
				player.PlayerAttributes = map[string]types.AttributeValue{}
			}
			player.PlayerAttributes[name] = value
		}
		for _, location := range slices.Sorted(maps.Keys(p.LatencyMilliseconds)) {
			milliseconds := p.LatencyMilliseconds[location]
			check.that(milliseconds > 0 && milliseconds <= math.MaxInt32, fmt.Sprintf("%s.LatencyMilliseconds[%s]", field, location),
				fmt.Sprint(milliseconds), "a number of milliseconds from 1")
			if player.LatencyInMs == nil {
				player.LatencyInMs = map[string]int32{}
			}
			player.LatencyInMs[location] = int32(milliseconds)
		}
		in.Players = append(in.Players, player)
	}
	if check.err != nil {
		return Ticket{}, check.err
	}
	answer, err := c.api.StartMatchmaking(ctx, in)
	if err != nil {
		return Ticket{}, failed("StartMatchmaking", err)
	}
	return ticketOf(answer.MatchmakingTicket), nil
}

// StopMatchmaking cancels a ticket. It fails with ErrRefused if the ticket's match already waits for a game session, and with ErrNotFound
// if there is no such ticket.
func (c *Client) StopMatchmaking(ctx context.Context, ticketID string) error {
	check := check{call: "StopMatchmaking"}
	check.need("TicketID", ticketID)
	if check.err != nil {
		return check.err
	}
	if _, err := c.api.StopMatchmaking(ctx, &gamelift.StopMatchmakingInput{TicketId: &ticketID}); err != nil {
		return failed("StopMatchmaking", err)
	}
	return nil
}

// MatchAnswer is the players' answer to a match that was found. There is no default.
type MatchAnswer string

// The answers.
const (
	Accept MatchAnswer = "ACCEPT"
	Reject MatchAnswer = "REJECT"
)

// AcceptMatchRequest is the answer of some players of a ticket.
type AcceptMatchRequest struct {
	TicketID  string      // the ticket of these players
	PlayerIDs []string    // at least one
	Answer    MatchAnswer // Accept or Reject
}

// AcceptMatch accepts or rejects a match that was found. It fails with ErrRefused if the ticket's status is not REQUIRES_ACCEPTANCE, and
// with ErrNotFound if there is no such ticket.
func (c *Client) AcceptMatch(ctx context.Context, r AcceptMatchRequest) error {
	check := check{call: "AcceptMatch"}
	check.need("TicketID", r.TicketID)
	check.that(len(r.PlayerIDs) > 0, "PlayerIDs", "", "at least one player")
	for i, id := range r.PlayerIDs {
		check.need(fmt.Sprintf("PlayerIDs[%d]", i), id)
	}
	check.that(r.Answer == Accept || r.Answer == Reject, "Answer", string(r.Answer), "ACCEPT or REJECT")
	if check.err != nil {
		return check.err
	}
	if _, err := c.api.AcceptMatch(ctx, &gamelift.AcceptMatchInput{
		TicketId: &r.TicketID, PlayerIds: r.PlayerIDs, AcceptanceType: types.AcceptanceType(r.Answer),
	}); err != nil {
		return failed("AcceptMatch", err)
	}
	return nil
}

// Ticket describes a ticket as it is now. It fails with ErrNotFound if there is no such ticket.
func (c *Client) Ticket(ctx context.Context, ticketID string) (Ticket, error) {
	check := check{call: "Ticket"}
	check.need("TicketID", ticketID)
	if check.err != nil {
		return Ticket{}, check.err
	}
	answer, err := c.api.DescribeMatchmaking(ctx, &gamelift.DescribeMatchmakingInput{TicketIds: []string{ticketID}})
	switch {
	case err != nil:
		return Ticket{}, failed("Ticket", err)
	case len(answer.TicketList) != 1:
		return Ticket{}, &Error{"Ticket", ErrNotFound, fmt.Errorf("the service describes %d tickets as %s", len(answer.TicketList), ticketID)}
	}
	return ticketOf(&answer.TicketList[0]), nil
}

func ticketOf(t *types.MatchmakingTicket) Ticket {
	if t == nil {
		return Ticket{}
	}
	ticket := Ticket{
		ID:            aws.ToString(t.TicketId),
		Configuration: aws.ToString(t.ConfigurationName),
		Status:        TicketStatus(t.Status),
		StatusReason:  aws.ToString(t.StatusReason),
		StatusMessage: aws.ToString(t.StatusMessage),
		Started:       aws.ToTime(t.StartTime),
		Ended:         aws.ToTime(t.EndTime),
		EstimatedWait: time.Duration(aws.ToInt32(t.EstimatedWaitTime)) * time.Second,
		Teams:         map[string]string{},
	}
	for _, p := range t.Players {
		if team := aws.ToString(p.Team); team != "" {
			ticket.Teams[aws.ToString(p.PlayerId)] = team
		}
	}
	if at := t.GameSessionConnectionInfo; at != nil {
		ticket.SessionID = aws.ToString(at.GameSessionArn)
		for _, p := range at.MatchedPlayerSessions {
			ticket.Seats = append(ticket.Seats, Seat{
				PlayerSessionID: aws.ToString(p.PlayerSessionId), PlayerID: aws.ToString(p.PlayerId), SessionID: ticket.SessionID,
				IPAddress: aws.ToString(at.IpAddress), DNSName: aws.ToString(at.DnsName), Port: int(aws.ToInt32(at.Port)),
			})
		}
	}
	return ticket
}
