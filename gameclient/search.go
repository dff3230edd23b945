package gameclient

import (
	"context"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

// SearchSessionsRequest says which game sessions of a fleet are wanted. Empty fields are not sent.
type SearchSessionsRequest struct {
	FleetID    string // this, an id or an ARN
	AliasID    string // or this
	Location   string // only there
	Filter     string // such as "gameSessionProperties.level = 'arena' AND hasAvailablePlayerSessions=true"; empty: every ACTIVE session
	Sort       string // such as "creationTimeMillis DESC"; empty: random order
	MaxResults int    // in this page; the service gives 20 at most, and when 0
	NextToken  string // of the page before
}

// SearchPage is a part of what a search has found.
type SearchPage struct {
	Sessions  []Session
	NextToken string // empty: the last page
}

// SearchSessions finds game sessions that are ACTIVE. None found is an empty page, not an error.
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

// Sessions is everything that a search finds, page after page. The first error ends it.
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
