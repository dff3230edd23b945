package gamelift

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/gamelift"
	"github.com/aws/aws-sdk-go-v2/service/gamelift/types"
)

func TestComputes(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	register := func(name, location string) (*gamelift.RegisterComputeOutput, error) {
		return h.sdk.RegisterCompute(t.Context(), &gamelift.RegisterComputeInput{
			FleetId: aws.String("arn:aws:gamelift:eu-central-1:1:fleet/" + id), ComputeName: &name, IpAddress: aws.String("192.0.2.7"),
			DnsName: aws.String("host.example"), CertificatePath: aws.String("/etc/cert"), Location: &location,
		})
	}
	x := must(register("host/7", "custom-home"))(t).Compute
	if *x.ComputeArn != "arn:aws:gamelift:eu-central-1:123456789012:compute/host/7" || x.ComputeStatus != "Active" || *x.IpAddress != "192.0.2.7" ||
		*x.DnsName != "host.example" || *x.GameLiftServiceSdkEndpoint != "wss://muster.example:8443/base" ||
		*x.GameLiftAgentEndpoint != "wss://muster.example:8443/base/agent" || *x.Location != "custom-home" {
		t.Errorf("got %+v", x)
	}
	must(register("host/7", "custom-home"))(t) // agents register at every start
	_, err := register("host/7", "custom-elsewhere")
	refused(t, err, codeInvalidRequest)
	_, err = h.sdk.RegisterCompute(t.Context(), &gamelift.RegisterComputeInput{
		FleetId: aws.String(nowhere), ComputeName: aws.String("x"), IpAddress: aws.String("::1"), Location: aws.String("custom-home"),
	})
	refused(t, err, codeInvalidRequest) // NotFoundException is not declared

	for _, name := range []string{"host/7", *x.ComputeArn} {
		got := must(h.sdk.DescribeCompute(t.Context(), &gamelift.DescribeComputeInput{FleetId: &id, ComputeName: &name}))(t)
		if *got.Compute.ComputeName != "host/7" {
			t.Errorf("got %+v", got.Compute)
		}
	}
	_, err = h.sdk.DescribeCompute(t.Context(), &gamelift.DescribeComputeInput{FleetId: &id, ComputeName: aws.String("none")})
	refused(t, err, "NotFoundException")
	must(h.sdk.DeregisterCompute(t.Context(), &gamelift.DeregisterComputeInput{FleetId: &id, ComputeName: x.ComputeArn}))(t)
	_, err = h.sdk.DeregisterCompute(t.Context(), &gamelift.DeregisterComputeInput{FleetId: &id, ComputeName: aws.String("host/7")})
	refused(t, err, "NotFoundException")
}

func TestComputesArePaged(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	want := []string{"DesktopPC"}
	for i := range 4 {
		h.later(time.Millisecond)
		name := fmt.Sprint("host-", 9-i)
		must(h.sdk.RegisterCompute(t.Context(), &gamelift.RegisterComputeInput{
			FleetId: &id, ComputeName: &name, IpAddress: aws.String("::1"), Location: aws.String("custom-home"),
		}))(t)
		want = append(want, name)
	}
	var got []string
	pages := gamelift.NewListComputePaginator(h.sdk, &gamelift.ListComputeInput{FleetId: &id, Location: aws.String("custom-home"), Limit: aws.Int32(2)})
	for pages.HasMorePages() {
		for _, x := range must(pages.NextPage(t.Context()))(t).ComputeList {
			got = append(got, *x.ComputeName)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	none := must(h.sdk.ListCompute(t.Context(), &gamelift.ListComputeInput{FleetId: &id, Location: aws.String("custom-elsewhere")}))(t)
	if len(none.ComputeList) != 0 {
		t.Errorf("got %+v", none.ComputeList)
	}
	_, err := h.sdk.ListCompute(t.Context(), &gamelift.ListComputeInput{FleetId: aws.String(nowhere)})
	refused(t, err, codeInvalidRequest)
}

func TestAuthTokenIsTheSameWhileItLives(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	get := func() *gamelift.GetComputeAuthTokenOutput {
		return must(h.sdk.GetComputeAuthToken(t.Context(), &gamelift.GetComputeAuthTokenInput{FleetId: &id, ComputeName: aws.String("DesktopPC")}))(t)
	}
	first := get()
	if unregistered := h.secret.ProcessToken(id, "DesktopPC", [16]byte{}, 1); *first.AuthToken == unregistered || *first.ComputeArn != "arn:aws:gamelift:eu-central-1:123456789012:compute/DesktopPC" {
		t.Errorf("got %+v", first)
	}
	if again := get(); *again.AuthToken != *first.AuthToken || !again.ExpirationTimestamp.Equal(*first.ExpirationTimestamp) {
		t.Errorf("got %s until %s, then %s until %s", *first.AuthToken, first.ExpirationTimestamp, *again.AuthToken, again.ExpirationTimestamp)
	}
	h.later(2*time.Hour + 50*time.Minute)
	if next := get(); *next.AuthToken == *first.AuthToken || !next.ExpirationTimestamp.After(*first.ExpirationTimestamp) {
		t.Errorf("ten minutes before its end the token is still %s until %s", *next.AuthToken, next.ExpirationTimestamp)
	}
	_, err := h.sdk.GetComputeAuthToken(t.Context(), &gamelift.GetComputeAuthTokenInput{FleetId: &id, ComputeName: aws.String("none")})
	refused(t, err, "NotFoundException")
}

func TestCapacityAndUtilization(t *testing.T) {
	h := newHall(t, time.Hour)
	id := h.anywhere()
	must(h.sdk.RegisterCompute(t.Context(), &gamelift.RegisterComputeInput{
		FleetId: &id, ComputeName: aws.String("idle"), IpAddress: aws.String("::1"), Location: aws.String("custom-home"),
	}))(t)
	game, _ := h.activeGame(id, "p1")
	h.serverReady(id, "p2")
	must(h.sdk.CreatePlayerSession(t.Context(), &gamelift.CreatePlayerSessionInput{GameSessionId: game.GameSessionId, PlayerId: aws.String("ann")}))(t)

	all := must(h.sdk.DescribeFleetUtilization(t.Context(), &gamelift.DescribeFleetUtilizationInput{FleetIds: []string{id}}))(t).FleetUtilization[0]
	home := must(h.sdk.DescribeFleetLocationUtilization(t.Context(), &gamelift.DescribeFleetLocationUtilizationInput{FleetId: &id, Location: aws.String("custom-home")}))(t).FleetUtilization
	for _, u := range []*types.FleetUtilization{&all, home} {
		if *u.ActiveServerProcessCount != 2 || *u.ActiveGameSessionCount != 1 || *u.CurrentPlayerSessionCount != 1 || *u.MaximumPlayerSessionCount != 2 {
			t.Errorf("got processes %d, games %d, players %d of %d", *u.ActiveServerProcessCount, *u.ActiveGameSessionCount, *u.CurrentPlayerSessionCount, *u.MaximumPlayerSessionCount)
		}
	}
	capacity := must(h.sdk.DescribeFleetCapacity(t.Context(), &gamelift.DescribeFleetCapacityInput{}))(t).FleetCapacity[0].InstanceCounts
	inHome := must(h.sdk.DescribeFleetLocationCapacity(t.Context(), &gamelift.DescribeFleetLocationCapacityInput{FleetId: &id, Location: aws.String("custom-home")}))(t).FleetCapacity.InstanceCounts
	for _, n := range []*types.EC2InstanceCounts{capacity, inHome} {
		if *n.ACTIVE != 2 || *n.IDLE != 1 {
			t.Errorf("got ACTIVE %d, IDLE %d", *n.ACTIVE, *n.IDLE)
		}
	}
	_, err := h.sdk.DescribeFleetLocationCapacity(t.Context(), &gamelift.DescribeFleetLocationCapacityInput{FleetId: &id, Location: aws.String("custom-x")})
	refused(t, err, "NotFoundException")

	must(h.sdk.TerminateGameSession(t.Context(), &gamelift.TerminateGameSessionInput{
		GameSessionId: game.GameSessionId, TerminationMode: types.TerminationModeTriggerOnProcessTerminate,
	}))(t)
	all = must(h.sdk.DescribeFleetUtilization(t.Context(), &gamelift.DescribeFleetUtilizationInput{FleetIds: []string{id}}))(t).FleetUtilization[0]
	if *all.ActiveGameSessionCount != 0 || *all.ActiveServerProcessCount != 2 {
		t.Errorf("while the game session is TERMINATING: got processes %d, games %d", *all.ActiveServerProcessCount, *all.ActiveGameSessionCount)
	}
}
