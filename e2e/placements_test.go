package e2e

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"

	"github.com/musterhq/muster/internal/waittest"
)

// queue makes a queue over the fleet.
func (p *place) queue(name string) {
	p.t.Helper()
	_, err := p.api().CreateGameSessionQueue(p.t.Context(), &gamelift.CreateGameSessionQueueInput{
		Name: &name, TimeoutInSeconds: aws.Int32(600),
		Destinations: []types.GameSessionQueueDestination{{DestinationArn: aws.String("arn:aws:gamelift:us-east-1::fleet/" + p.fleet)}},
	})
	must(p.t, err)
}

func (s *service) placement(id string) types.GameSessionPlacement {
	s.t.Helper()
	out, err := s.api().DescribeGameSessionPlacement(s.t.Context(), &gamelift.DescribeGameSessionPlacementInput{PlacementId: &id})
	must(s.t, err)
	return *out.GameSessionPlacement
}

// The answer to StartGameSessionPlacement is lost, so the SDK repeats the request. The caller gets the error
// that the id was used before, and so knows that the first request arrived. There is one placement, and it gets one game session, even if
// the service crashes before.
func TestPlacementWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	s := startService(t)
	p := s.prepare()
	p.queue("cup")
	n := startNetwork(t, s.address)
	impatient := gamelift.New(gamelift.Options{
		Region: region, BaseEndpoint: aws.String("http://" + n.address), RetryMaxAttempts: 5,
		Credentials: credentials.NewStaticCredentialsProvider("any", "any", ""), HTTPClient: &http.Client{Transport: &http.Transport{}},
	})

	n.set(false, true)
	answer := make(chan error)
	go func() {
		_, err := impatient.StartGameSessionPlacement(t.Context(), &gamelift.StartGameSessionPlacementInput{
			PlacementId: aws.String("match-1"), GameSessionQueueName: aws.String("cup"), MaximumPlayerSessionCount: aws.Int32(2),
			DesiredPlayerSessions: []types.DesiredPlayerSession{{PlayerId: aws.String("ann")}},
		})
		answer <- err
	}()
	waittest.Until(t, "the answer to be on its way", func() bool { return n.swallowed() > 0 })
	n.set(false, false)
	n.cut(true)
	refused(t, "the same again", <-answer, "InvalidRequestException", "match-1 was used before")
	if got := s.placement("match-1"); got.Status != types.GameSessionPlacementStatePending || *got.MaximumPlayerSessionCount != 2 {
		t.Errorf("after the repetition: %+v", got)
	}

	s.kill()
	s.start()
	server := p.ready(sdkOptions{})
	started := server.untilEvent("start", 1).Session
	server.must("activate")
	var placed types.GameSessionPlacement
	waittest.Until(t, "the placement to be fulfilled", func() bool {
		placed = s.placement("match-1")
		return placed.Status == types.GameSessionPlacementStateFulfilled
	})
	if *placed.GameSessionArn != started.GameSessionId || len(placed.PlacedPlayerSessions) != 1 {
		t.Errorf("placed: %+v, the server has %s", placed, started.GameSessionId)
	}
	list, err := s.api().DescribeGameSessions(t.Context(), &gamelift.DescribeGameSessionsInput{FleetId: &p.fleet})
	must(t, err)
	if len(list.GameSessions) != 1 || server.countEvents("start") != 1 {
		t.Errorf("%d game sessions, the server was asked %d times, want one", len(list.GameSessions), server.countEvents("start"))
	}
	s.untilPlayer(*placed.PlacedPlayerSessions[0].PlayerSessionId, types.PlayerSessionStatusReserved)
}
