package gamelift

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
)

func TestPageTokenBelongsToItsListing(t *testing.T) {
	in := &gamelift.DescribeGameSessionsInput{FleetId: aws.String("fleet-1"), Limit: aws.Int32(2)}
	token := pageToken("DescribeGameSessions", in, "1767000000125/gsess-ä")
	for _, each := range []struct {
		name      string
		operation string
		in        *gamelift.DescribeGameSessionsInput
		token     *string
		ok        bool
	}{
		{"same", "DescribeGameSessions", in, token, true},
		{"other page size", "DescribeGameSessions", &gamelift.DescribeGameSessionsInput{FleetId: aws.String("fleet-1"), NextToken: token}, token, true},
		{"other fleet", "DescribeGameSessions", &gamelift.DescribeGameSessionsInput{FleetId: aws.String("fleet-2")}, token, false},
		{"one filter more", "DescribeGameSessions", &gamelift.DescribeGameSessionsInput{FleetId: aws.String("fleet-1"), StatusFilter: aws.String("ACTIVE")}, token, false},
		{"other operation", "DescribeGameSessionDetails", in, token, false},
		{"cut", "DescribeGameSessions", in, aws.String((*token)[:len(*token)-4]), false},
		{"too short", "DescribeGameSessions", in, aws.String("abc"), false},
		{"nonsense", "DescribeGameSessions", in, aws.String("no token!"), false},
	} {
		cursor, err := pageCursor(each.operation, each.in, each.token)
		if (err == nil) != each.ok || each.ok && cursor != "1767000000125/gsess-ä" {
			t.Errorf("%s: got %q %v", each.name, cursor, err)
		}
	}
	if cursor, err := pageCursor("DescribeGameSessions", in, nil); cursor != "" || err != nil {
		t.Errorf("no token: got %q %v", cursor, err)
	}
}
