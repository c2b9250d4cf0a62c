-- A claim was a hold, and a pending message a letter.
UPDATE beliefs SET kind = 'claim' WHERE kind = 'hold';
UPDATE beliefs SET kind = 'message' WHERE kind = 'letter';
