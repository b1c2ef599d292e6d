package judge

import (
	"testing"

	"plimsoll/internal/model"
)

func TestTheSentenceSaysWhatCanBeSpared(t *testing.T) {
	const limit = "The CPUs are the limit (server)."
	spared := &model.Bill{Entries: []model.BillEntry{{Text: "compressing", Share: 0.94, Avoidable: []model.Saving{{Share: 0.931}}}}}
	for name, c := range map[string]struct {
		answer model.Answer
		bill   *model.Bill
		want   string
	}{
		"much of it":                        {model.AnswerCapacity, spared, "The CPUs are the limit (server); 93.1 % of that CPU time goes into work that can be saved, all or in part: compressing."},
		"in a library":                      {model.AnswerCapacity, &model.Bill{Entries: []model.BillEntry{{Text: "cryptography", Told: true, Share: 0.4, Files: []model.LoadGroup{{Name: "libcrypto.so.3", Share: 0.9}}}}}, "The CPUs are the limit (server); 40 % of that CPU time goes into cryptography (libcrypto.so.3)."},
		"hardly any":                        {model.AnswerCapacity, &model.Bill{Entries: []model.BillEntry{{Text: "cryptography", Told: true, Share: 0.09}}}, limit},
		"nothing":                           {model.AnswerCapacity, &model.Bill{Entries: []model.BillEntry{{Text: "own", Share: 1}}}, limit},
		"a script's function":               {model.AnswerCapacity, &model.Bill{Entries: []model.BillEntry{{Mechanism: "own", Text: "the application's own code", Share: 0.9, Caller: "app/shop.py:list", Files: []model.LoadGroup{{Name: "python3.11", Share: 0.9}}}}}, "The CPUs are the limit (server); 90 % of that CPU time goes into the application's own code, most of it in app/shop.py:list."},
		"an interpreter's loop":             {model.AnswerCapacity, &model.Bill{Entries: []model.BillEntry{{Mechanism: "own", Text: "the application's own code", Share: 0.9, Functions: []model.BillFunction{{Function: "_PyEval_EvalFrameDefault"}}}}}, "The CPUs are the limit (server); 90 % of that CPU time is scripts', of which this level sees the interpreter alone: plimsoll again --trace full names their functions."},
		"no bill":                           {model.AnswerCapacity, nil, limit},
		"a bill that is none":               {model.AnswerCapacity, &model.Bill{Missing: "too few samples"}, limit},
		"healthy, and nothing to be spared": {model.AnswerHealthy, &model.Bill{MachineShare: 0.8, Entries: []model.BillEntry{{Text: "own", Share: 1, Told: true}}}, limit},
		"healthy, and busy CPUs":            {model.AnswerHealthy, &model.Bill{MachineShare: 0.8, Entries: spared.Entries}, "The CPUs are the limit (server); its programs use 80 % of the CPUs, and 93.1 % of that CPU time goes into work that can be saved, all or in part: compressing."},
		"healthy, and idle CPUs":            {model.AnswerHealthy, spared, limit},
		"another answer":                    {model.AnswerCause, spared, limit},
	} {
		v := model.Verdict{Answer: c.answer, Sentence: limit, Bill: c.bill}
		withBill(&v, c.answer == model.AnswerHealthy)
		if v.Sentence != c.want {
			t.Errorf("%s: %s; want %s", name, v.Sentence, c.want)
		}
	}
}

// Who reads one line knows that less was offered than asked for.
func TestTheSentenceBeginsWithLostWorkers(t *testing.T) {
	const served = "The offered load was served; nothing held it back."
	one, lost := model.Worker{Name: "a"}, model.Worker{Name: "b", Gone: "killed"}
	for want, l := range map[string]*model.Load{
		served: {Workers: []model.Worker{one, one}},
		"The load lost 1 of its 3 workers (b), and their share with them. " + served: {Workers: []model.Worker{one, lost, one}},
	} {
		v := model.Verdict{Answer: model.AnswerHealthy, Sentence: served}
		if withLost(&v, l); v.Sentence != want {
			t.Errorf("%s; want %s", v.Sentence, want)
		}
	}
	v := model.Verdict{Sentence: served}
	if withLost(&v, nil); v.Sentence != served {
		t.Errorf("without a load: %s", v.Sentence)
	}
}
