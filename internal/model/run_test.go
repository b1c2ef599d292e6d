package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

func TestARecordedPlanHoldsNoSecrets(t *testing.T) {
	plan := model.LoadPlan{
		URL: "http://joe:pw@h/?token=x", Headers: []string{"Authorization: Bearer x", "Content-Type: text/plain", "X-Own:x", "odd"}, Body: []byte("password=x"),
	}
	want := model.LoadPlan{
		URL: "http://(masked)@h/?token=(masked)", Headers: []string{"Authorization: (masked)", "Content-Type: text/plain", "X-Own: (masked)", "odd: (masked)"}, BodyBytes: 10,
	}
	if diff := cmp.Diff(want, plan.WithoutSecrets()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if plan.Headers[0] != "Authorization: Bearer x" || len(plan.Body) != 10 {
		t.Errorf("the plan itself was changed: %+v", plan)
	}
}
