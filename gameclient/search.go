package gameclient

import (
	"context"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

// SearchSessionsRequest describes the game sessions to find on a fleet. Empty fields are not sent.
type SearchSessionsRequest struct {
	FleetID    string // id or ARN; exactly one of FleetID and AliasID is required
	AliasID    string // id or ARN of an alias for a fleet
	Location   string // finds only sessions there
	Filter     string // such as "gameSessionProperties.level = 'arena' AND hasAvailablePlayerSessions=true"; empty: every ACTIVE session
	Sort       string // such as "creationTimeMillis DESC"; empty: random order
	MaxResults int    // in this page, 1 to 20; 0 means 20
	NextToken  string // of the page before; empty: the first page
}

// SearchPage is a page of game sessions that a search has found.
type SearchPage struct {
	Sessions  []Session // up to MaxResults
	NextToken string    // for the next page; empty on the last one
}

// SearchSessions finds game sessions that are ACTIVE. A search that finds none returns an empty page, not an error. The error is an
// *InvalidRequestError, or an *Error: ErrNotFound if the fleet does not exist, ErrRefused if Filter or Sort has a mistake; its text says
// where.
func (c *Client) SearchSessions(ctx context.Context, r SearchSessionsRequest) (SearchPage, error) {
	check := check{call: "SearchSessions"}
	check.that(r.FleetID != "" || r.AliasID != "", "FleetID", "", "the fleet's id, or AliasID")
	check.that(r.FleetID == "" || r.AliasID == "", "AliasID", r.AliasID, "nothing beside FleetID")
	check.that(r.MaxResults >= 0 && r.MaxResults <= 20, "MaxResults", fmt.Sprint(r.MaxResults), "0 to 20")
	if check.err != nil {
		return SearchPage{}, check.err
	}
	in := &gamelift.SearchGameSessionsInput{
		FleetId: text(r.FleetID), AliasId: text(r.AliasID), Location: text(r.Location),
		FilterExpression: text(r.Filter), SortExpression: text(r.Sort), NextToken: text(r.NextToken),
	}
	if r.MaxResults > 0 {
		in.Limit = aws.Int32(int32(r.MaxResults))
	}
	answer, err := c.api.SearchGameSessions(ctx, in)
	if err != nil {
		return SearchPage{}, failed("SearchSessions", err)
	}
	page := SearchPage{NextToken: aws.ToString(answer.NextToken), Sessions: make([]Session, len(answer.GameSessions))}
	for i := range answer.GameSessions {
		page.Sessions[i] = sessionOf(&answer.GameSessions[i])
	}
	return page, nil
}

// Sessions iterates over all game sessions that a search finds, page after page. The first error, as of SearchSessions, ends it.
func (c *Client) Sessions(ctx context.Context, r SearchSessionsRequest) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		for {
			page, err := c.SearchSessions(ctx, r)
			if err != nil {
				yield(Session{}, err)
				return
			}
			for _, s := range page.Sessions {
				if !yield(s, nil) {
					return
				}
			}
			if r.NextToken = page.NextToken; r.NextToken == "" {
				return
			}
		}
	}
}
