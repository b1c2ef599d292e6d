package flight

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/secret"
)

// hookPatience is for how long a webhook is waited for.
const hookPatience = 10 * time.Second

// announcement is what a webhook is told of a run.
type announcement struct {
	Hosts    []string     `json:"hosts"`
	Dir      string       `json:"dir"`
	Why      string       `json:"why"`
	Answer   model.Answer `json:"answer,omitempty"`
	Sentence string       `json:"sentence,omitempty"`
	Rules    []string     `json:"rules,omitempty"`
}

func (f *Recorder) announcement(dir, why string, j Judgement) announcement {
	a := announcement{Dir: dir, Why: why, Answer: j.Answer, Sentence: secret.Text(j.Sentence), Rules: j.Rules}
	for _, h := range f.hosts {
		a.Hosts = append(a.Hosts, h.Name)
	}
	return a
}

// announce tells the webhook, one after the other, until ctx ends. Nobody waits for it.
func (f *Recorder) announce(ctx context.Context) {
	client := http.Client{Timeout: hookPatience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-f.hook:
			if err := f.post(ctx, &client, a); err != nil {
				f.numbers.unheard.Inc()
				f.opt.Note(secret.Text(fmt.Sprintf("tell the webhook: %v", err)))
			}
		}
	}
}

func (f *Recorder) post(ctx context.Context, client *http.Client, a announcement) error {
	doc, err := json.Marshal(a)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.opt.Webhook, bytes.NewReader(doc))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	var whole *url.Error
	if errors.As(err, &whole) { // it says the address, by which others could write there
		err = whole.Err
	}
	if err != nil {
		return err
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("it answers %s; want 2xx", res.Status)
	}
	return nil
}
